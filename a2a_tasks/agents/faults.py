"""What agents raise to say something to the client."""

from __future__ import annotations

__all__ = ["AgentError", "FileUnavailable"]


class AgentError(Exception):
    """Raise it to fail the task with a text the client may read. Other exceptions say nothing to the client."""


class FileUnavailable(AgentError):
    """A file cannot be had; the text says why, and may be read by the client."""
