"""The capabilities that an agent's card declares, and without which requests are refused (A2A 1.0 §3.3.4)."""

from __future__ import annotations

from a2a_tasks.agents import Agent
from a2a_tasks.protocol.errors import PushNotificationNotSupported, UnsupportedOperation

__all__ = ["require_capability"]


def require_capability(agent: Agent, capability: str) -> None:
    """Raise the error of a missing capability: "streaming", "push_notifications", or empty, which all agents have.

    Raises UnsupportedOperation, PushNotificationNotSupported.
    """
    if capability == "streaming" and not agent.streaming:
        raise UnsupportedOperation("The agent does not stream")
    if capability == "push_notifications" and not agent.push_notifications:
        raise PushNotificationNotSupported
