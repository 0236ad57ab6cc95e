"""Make the pictures of the console and the playground: `.venv/bin/python docs/images/make_pictures.py`. It needs Chromium.

A real host runs the demo agents and `examples/travel`, a client sends to them, and a browser looks at the pages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PORT = 8765
URL = f"http://127.0.0.1:{PORT}"
#: The agents and the texts that they get.
SENT = [
    *(("demo", f"echo invoice {number} of Globex is paid") for number in range(4711, 4719)),
    *(("demo", f"fail checksum of invoice {number}") for number in range(4720, 4725)),
    ("demo", "ask May I pay 1,240.00 EUR to Globex?"),
    ("demo", "form"),
    ("demo", "call call sleep 2"),
    ("demo", "sleep 600"),
    ("planner", "Oslo"),
]
#: By name of the picture: the page of the console, and its height.
PAGES = {
    "overview": ("/admin/", 900),
    "tasks": ("/admin/a2a_tasks/task/", 760),
    "inbox": ("/admin/a2a_tasks/waiting/", 620),
}


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {"A2A_APPS": "examples.demo,examples.tables,examples.travel", "VAR_DIR": folder}
        environ |= {"A2A_ANONYMOUS": "1", "A2A_ENVIRONMENT_NAME": "production", "PORT": str(PORT)}
        environ |= {"A2A_GRPC_PORT": "0"}
        log = Path(folder) / "log"
        with log.open("w") as out:
            host = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env={**os.environ, **environ},
                stdout=out,
            )
        try:
            password = wait_for_password(log)
            for slug, text in SENT:
                send(slug, text)
            trip = travel()
            photograph(password, trip)
        finally:
            host.terminate()
            host.wait()


def wait_for_password(log: Path) -> str:
    """Return the admin's password once the host answers."""
    for _ in range(600):
        time.sleep(0.2)
        found = re.search(r"with the password (\S+)", log.read_text())
        if found and "The host is up" in log.read_text():
            return found[1]
    raise SystemExit(f"The host did not start:\n{log.read_text()}")


def call(slug: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a JSON-RPC call to an agent."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    request = urllib.request.Request(  # noqa: S310 - the host itself
        f"{URL}/agents/{slug}/", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the same
        result: dict[str, Any] = json.load(answer)["result"]
    return result


def send(slug: str, said: str | list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    """Send a text or parts; return the task at once."""
    parts = [{"text": said}] if isinstance(said, str) else said
    message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": parts, **about}
    sent = call(
        slug, "SendMessage", {"message": message, "configuration": {"returnImmediately": True}}
    )
    task: dict[str, Any] = sent["task"]
    return task


def travel() -> str:
    """Let the planner plan and book a trip; return the id of its task."""
    task = send("planner", "Rome")
    about = {"taskId": task["id"], "contextId": task["contextId"]}
    wait_for(task["id"], "TASK_STATE_INPUT_REQUIRED")
    send("planner", [{"data": {"book": True}}], **about)
    wait_for(task["id"], "TASK_STATE_COMPLETED")
    return str(task["id"])


def wait_for(task: str, state: str) -> None:
    """Wait until a task of the planner has this state."""
    while call("planner", "GetTask", {"id": task})["status"]["state"] != state:
        time.sleep(0.2)


def photograph(password: str, trip: str) -> None:
    """Look at the pages."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{URL}/admin/login/?next=/admin/")
        page.fill("#id_username", "admin")
        page.fill("#id_password", password)
        page.click("[type=submit]")
        for name, (path, height) in PAGES.items():
            keep(page, name, path, height)
        keep(page, "task", f"/admin/t/{trip}", 900)
        page.goto(f"{URL}/?agent=demo")
        page.get_by_role("textbox").last.fill("form")
        page.keyboard.press("Enter")
        page.wait_for_timeout(2_000)
        page.screenshot(path=HERE / "playground.png")
        browser.close()


def keep(page: Page, name: str, path: str, height: int) -> None:
    """Keep a picture of a page of the console."""
    page.set_viewport_size({"width": 1280, "height": height})
    page.goto(URL + path)
    page.wait_for_timeout(1_000)
    page.screenshot(path=HERE / f"{name}.png")


if __name__ == "__main__":
    main()
