"""A door that is closed costs nothing: a host that serves A2A, or another door, does not import it."""

from __future__ import annotations

import subprocess
import sys

ONLY_STARTED = """
import sys, django
django.setup()
import a2a_project.asgi
print([name for name in sys.modules if name.startswith("a2a_doors")])
"""
ASKED = """
import asyncio, sys
import django
django.setup()
from django.conf import settings
from a2a_project.asgi import application
settings.A2A_ANONYMOUS, settings.A2A_DOORS = "1", sys.argv[1]

async def ask(method, path):
    sent = []
    async def receive():
        return {"type": "http.request", "body": b"{}"}
    async def send(message):
        sent.append(message)
    about = {"method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
    scope = {"type": "http", "scheme": "http", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1)}
    await application({**scope, **about}, receive, send)
    return sent[0]["status"]

async def ask_all():
    paths = ["/agents/demo/.well-known/agent-card.json", "/v1/models"]
    return [await ask("GET", path) for path in paths[:1 + bool(settings.A2A_DOORS)]] + [
        await ask("POST", f"/agents/demo/{door}") for door in ("mcp", "ag-ui")
    ]

print(asyncio.run(ask_all()))
print([name for name in ("openai", "ag_ui", "mcp") if f"a2a_doors.{name}" in sys.modules])
print([name for name in ("openai", "ag_ui", "mcp", "mcp_types") if name in sys.modules])
"""


def run(code: str, *args: str) -> list[str]:
    """The lines that a process of its own prints."""
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.splitlines()


def test_a_host_imports_no_door_before_its_first_request() -> None:
    assert run(ONLY_STARTED) == ["[]"]


def test_a_host_without_doors_imports_none() -> None:
    assert run(ASKED, "") == ["[200, 404, 404]", "[]", "[]"]


def test_a_door_that_is_open_brings_no_other_one() -> None:
    assert run(ASKED, "openai") == ["[200, 200, 404, 404]", "['openai']", "[]"]
