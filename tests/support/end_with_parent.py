"""Processes of tests that end with the process that started them."""

from __future__ import annotations

import ctypes
import signal
import sys

__all__ = ["end_with_parent"]

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """In a child on Linux: request SIGTERM for the sudden death of its parent, so that no process keeps the ports."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
