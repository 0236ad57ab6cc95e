"""Make docs/images/resume.svg: `.venv/bin/python docs/images/make_resume.py`. It needs nothing but the host itself.

A real host runs the agent of step 4 of the tutorial. A client follows its task; the host is killed with -9 and started
again. The lines of both, at their moments, become an SVG with a CSS animation. Long pauses are cut.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from html import escape
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACES = "Rome Oslo Lima Cairo"
#: The place that is booked when the host is killed.
KILLED_AFTER = "Oslo"
MAX_PAUSE, LAST_PAUSE = 1.6, 4.0
WIDTH, LINE, TOP, COLUMN, RIGHT = 920, 21, 62, 16, 440

Lines = list[tuple[float, str, str, str]]  # the moment, the pane, the colour, the text


def main() -> None:
    """Run the story, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        lines = film(Path(folder))
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "resume.svg"
    target.write_text(draw(lines), encoding="utf-8")


def film(folder: Path) -> Lines:
    """Return what host and client print."""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (agent,) = [block for block in blocks if "def book" in block]
    (folder / "trips").mkdir()
    (folder / "trips" / "__init__.py").touch()
    (folder / "trips" / "agents.py").write_text(agent, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    story = Story(folder, port)
    host = story.start()
    client = threading.Thread(target=story.follow, daemon=True)
    client.start()
    story.killable.wait(60)
    story.say("host", "loud", f"$ kill -9 {host.pid}")
    host.send_signal(signal.SIGKILL)
    host.wait()
    time.sleep(1)
    host = story.start()
    client.join(120)
    host.terminate()
    host.wait()
    return story.lines


class Story:
    """A host, and a client that follows one task."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.lines: Lines = []
        self.killable = threading.Event()
        self._folder = folder
        self._environ = {
            **os.environ,
            "A2A_APPS": "trips",
            "A2A_DEFAULT_AGENT": "trips",
            "A2A_GRPC_PORT": "",
            "PORT": str(port),
            "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
            "PYTHONUNBUFFERED": "1",
            "VAR_DIR": str(folder / "var"),
        }

    def say(self, pane: str, colour: str, text: str) -> None:
        """Keep a line with its moment."""
        self.lines.append((time.monotonic(), pane, colour, text))

    def start(self) -> subprocess.Popen[str]:
        """Start the host; returns when it is up."""
        self.say("host", "loud", "$ make run")
        command = [sys.executable, str(ROOT / "manage.py"), "up"]
        host = subprocess.Popen(  # noqa: S603 - our own program
            command, cwd=self._folder, env=self._environ, stdout=subprocess.PIPE, text=True
        )
        up = threading.Event()
        threading.Thread(target=self._read, args=(host, up), daemon=True).start()
        up.wait(60)
        return host

    def _read(self, host: subprocess.Popen[str], up: threading.Event) -> None:
        for line in host.stdout or ():
            if line.startswith("The host is up"):
                self.say("host", "plain", line.partition(". ")[0] + ".")
                up.set()
            elif line.startswith("booking"):
                self.say("host", "good", line.strip())

    def follow(self) -> None:
        """Send a message, follow its task to the end over as many connections as needed."""
        message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": PLACES}]}
        self.say("client", "loud", f"> {PLACES}")
        url, body, last, lost = "/message:stream", {"message": message}, "", False
        while True:
            headers = {
                "Content-Type": "application/json",
                **({"Last-Event-ID": last} if last else {}),
            }
            call = urllib.request.Request(  # noqa: S310 - our own host
                f"{self.url}/agents/trips{url}", json.dumps(body).encode(), headers, method="POST"
            )
            try:
                with urllib.request.urlopen(call, timeout=30) as stream:  # noqa: S310 - the same
                    for line in map(bytes.decode, stream):
                        if line.startswith("id:"):
                            last = line.removeprefix("id:").strip()
                        if line.startswith("data:"):
                            event = json.loads(line.removeprefix("data:"))
                            if task := event.get("task"):
                                url, body = f"/tasks/{task['id']}:subscribe", {}
                            if self._tell(last, event):
                                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
            if not lost:
                self.say("client", "bad", f"connection lost; asks again after event {last}")
                lost = True
            time.sleep(0.3)

    def _tell(self, last: str, event: dict[str, Any]) -> bool:
        """Show an event; True if it is the last."""
        update = event.get("statusUpdate", {})
        state: str = update.get("status", {}).get("state", "").removeprefix("TASK_STATE_").lower()
        parts = update.get("status", {}).get("message", {}).get("parts", [])
        parts += event.get("artifactUpdate", {}).get("artifact", {}).get("parts", [])
        text = " ".join(part.get("text", "") for part in parts)
        if text or state == "completed":
            colour = "good" if state == "completed" else "plain"
            self.say("client", colour, f"event {last:>2}  {text or state}")
        if KILLED_AFTER in text:
            threading.Timer(1.2, self.killable.set).start()
        return state == "completed"


def draw(lines: Lines) -> str:
    """Return the picture. Times are seconds from the first line; a pause is cut to MAX_PAUSE."""
    lines = sorted(lines)
    moments, now = [], 0.4
    for before, line in zip([lines[0], *lines], lines, strict=False):
        now += min(line[0] - before[0], MAX_PAUSE)
        moments.append(now)
    total = now + LAST_PAUSE
    rows = {"host": 0, "client": 0}
    frames, texts = [], []
    for number, (moment, (_, pane, colour, text)) in enumerate(zip(moments, lines, strict=True)):
        x = COLUMN if pane == "host" else RIGHT + COLUMN
        y = TOP + LINE * rows[pane]
        rows[pane] += 1
        share = 100 * moment / total
        frames.append(
            f"@keyframes k{number} {{ 0% {{ opacity: 0 }} {share:.2f}% {{ opacity: 1 }} }}"
        )
        style = f"animation: k{number} {total:.1f}s step-end infinite"
        texts.append(
            f'<text x="{x}" y="{y}" class="{colour}" style="{style}">{escape(text)}</text>'
        )
    height = TOP + LINE * max(rows.values())
    return TEMPLATE.format(
        width=WIDTH,
        height=height,
        right=RIGHT,
        frames="\n".join(frames),
        texts="\n".join(texts),
        host=COLUMN,
        client=RIGHT + COLUMN,
    )


TEMPLATE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" \
aria-label="A host is killed with -9 and started again. Its task goes on, and nothing is done twice.">
<style>
text {{ font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre }}
.title {{ fill: #9aa4af; font-size: 12px }} .plain {{ fill: #e6e9ec }} .loud {{ fill: #7fb8e6; font-weight: 600 }}
.good {{ fill: #5fd08d }} .bad {{ fill: #ff8a80 }}
{frames}
@media (prefers-reduced-motion: reduce) {{ text {{ animation: none !important }} }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#16191d"/>
<path d="M0 32H{width}M{right} 0V{height}" stroke="#363c43"/>
<text x="{host}" y="21" class="title">the host</text>
<text x="{client}" y="21" class="title">a client</text>
{texts}
</svg>
"""

if __name__ == "__main__":
    main()
