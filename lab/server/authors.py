"""Hosts of people who write agents in a folder of their own: their environment, and messages to them."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

from tests import ROOT, backend
from tests.support.printing_process import PATIENCE

__all__ = ["START", "make_environ", "send"]

#: Seconds for a host to come up.
START = 60.0


def make_environ(folder: Path, apps: str, **more: str) -> dict[str, str]:
    """Return the environment of a host with apps from this folder."""
    return {
        **backend.children(),
        "A2A_APPS": apps,
        "A2A_GRPC_PORT": "",
        "PORT": "0",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "VAR_DIR": str(folder / "var"),
        **more,
    }


def send(agent: str, text: str, task: str = "", **configuration: Any) -> dict[str, Any]:
    """Send a message to the agent at this URL, or to a task of it, and return the task."""
    message: dict[str, Any] = {"role": "ROLE_USER", "parts": [{"text": text}]}
    message |= {"messageId": f"to {task}", "taskId": task} if task else {"messageId": "1"}
    request = urllib.request.Request(  # noqa: S310 - our own host
        f"{agent}/message:send",
        json.dumps({"message": message, "configuration": configuration}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - the same
        found: dict[str, Any] = json.load(answer)["task"]
    return found
