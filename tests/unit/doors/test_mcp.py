"""The door for MCP as long as nobody comes: its library, and what a host without the door imports."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from a2a_tasks import checks

IMPORTED = """
import django, sys
django.setup()
from a2a_project import asgi, doors
found = [name for name in sys.modules if name.partition(".")[0] in {"a2a_doors", "mcp", "mcp_types"}]
assert not found, found
"""


def test_a_host_imports_no_door_before_its_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_DOORS", "mcp")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_door_without_its_library_is_an_error_at_start(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_DOORS = "mcp"
    assert not list(checks._check_doors())
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    (error,) = checks._check_doors()
    assert error.id == "a2a_tasks.E064"
    assert error.hint == "pip install 'a2a-host[mcp]', or install requirements-mcp.txt."
