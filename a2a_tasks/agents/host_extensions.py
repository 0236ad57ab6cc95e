"""The host's additions to the protocol, declared as A2A extensions (A2A 1.0 §4.6). docs/clients.md explains them."""

from __future__ import annotations

from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.skill import Extension

__all__ = ["IDEMPOTENT_SENDS", "RESUMABLE_STREAMS", "TOOL_EVENTS", "USAGE", "list_extensions"]

RESUMABLE_STREAMS = Extension(
    "urn:a2a-host:extensions:resumable-streams:1",
    description="Events of streams are numbered. SubscribeToTask with Last-Event-ID goes on after that event, on any process.",
)
IDEMPOTENT_SENDS = Extension(
    "urn:a2a-host:extensions:idempotent-sends:1",
    description="A send with an Idempotency-Key can be sent again: it gives the same task and joins its answer.",
)
USAGE = Extension(
    "urn:a2a-host:extensions:usage:1",
    description="The metadata of a task has the tokens and requests so far, summed by model.",
)
TOOL_EVENTS = Extension(
    "urn:a2a-host:extensions:tool-events:1",
    description="Streams have status updates with the agent's calls of tools and their results, as data parts.",
)


def list_extensions(agent: Agent) -> tuple[Extension, ...]:
    """Return the extensions in an agent's card: its own, and the host's."""
    streams = (RESUMABLE_STREAMS,) if agent.streaming else ()
    usage = (USAGE,) if agent.reports_usage else ()
    tools = (TOOL_EVENTS,) if agent.streaming and agent.reports_tools else ()
    return (*agent.extensions, *streams, IDEMPOTENT_SENDS, *usage, *tools)
