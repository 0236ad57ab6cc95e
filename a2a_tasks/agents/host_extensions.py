"""What this host does beyond the protocol, declared as A2A extensions (A2A 1.0 §4.6): docs/extensions.md says how."""

from __future__ import annotations

from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.skill import Extension

__all__ = ["IDEMPOTENT_SENDS", "RESUMABLE_STREAMS", "declared"]

RESUMABLE_STREAMS = Extension(
    "urn:a2a-host:extensions:resumable-streams:1",
    description="Events of streams are numbered. SubscribeToTask with Last-Event-ID goes on after that event, on any process.",
)
IDEMPOTENT_SENDS = Extension(
    "urn:a2a-host:extensions:idempotent-sends:1",
    description="A send with an Idempotency-Key can be sent again: it gives the same task and joins its answer.",
)


def declared(agent: Agent) -> tuple[Extension, ...]:
    """The extensions in an agent's card: its own, and the host's."""
    streams = (RESUMABLE_STREAMS,) if agent.streaming else ()
    return (*agent.extensions, *streams, IDEMPOTENT_SENDS)
