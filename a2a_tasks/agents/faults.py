"""Exceptions of agents whose text the client gets."""

from __future__ import annotations

__all__ = ["AgentError", "BudgetSpent", "CallRefused", "FileUnavailable"]


class AgentError(Exception):
    """A failure of the task with a text for the client. The client gets no text of other exceptions."""


class BudgetSpent(AgentError):
    """The turn may spend no more. It is raised by `await turn.usage(...)` and before steps."""


class CallRefused(AgentError):
    """A call that the host refuses: of another agent (`turn.call`), or of a server (`turn.http`). Nothing has begun."""


class FileUnavailable(AgentError):
    """A file that is not available; the text names the reason, and the client may read it."""
