"""The switches that operators set while the host runs, as this process last read them (`access/switch_cache.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.declaration import AnnouncedAgent

__all__ = ["ON", "Switch", "find", "is_draining", "limits", "off", "put", "queue_of", "queues"]


@dataclass(frozen=True, slots=True)
class Switch:
    """The operators' settings for one agent."""

    #: "on", "draining" (no new tasks) or "off" (hidden from clients).
    state: str = "on"
    #: Most concurrent runs on the whole host; None = any number.
    max_running: int | None = None
    #: The queue of the agent's runs. Empty: the queue that the class of the agent names.
    queue: str = ""
    #: The version that serves; empty = the host chooses (`registry.agents`).
    version: str = ""
    #: The version that gets a share of the new conversations, in percent.
    canary: str = ""
    canary_percent: float = 0.0


#: The switch of an agent without settings.
ON = Switch()
_known: Mapping[str, Switch] = {}


def put(found: Mapping[str, Switch]) -> None:
    """Replace all switches by these, by slug."""
    global _known  # noqa: PLW0603 - one per process
    _known = found


def off() -> set[str]:
    """Return the slugs of the agents that are off."""
    return {slug for slug, switch in _known.items() if switch.state == "off"}


def is_draining(slug: str) -> bool:
    """Return whether the agent takes no new tasks."""
    return _known.get(slug, ON).state == "draining"


def find(slug: str) -> Switch:
    """Return the switch of an agent."""
    return _known.get(slug, ON)


def queue_of(agent: Agent) -> str:
    """Return the queue of the agent's runs. Each version of an announced agent has its own, from which none is moved."""
    if isinstance(agent, AnnouncedAgent):
        return agent.queue
    return _known.get(agent.slug, ON).queue or agent.queue


def queues() -> set[str]:
    """Return the queues that agents were moved to."""
    return {switch.queue for switch in _known.values() if switch.queue}


def limits() -> dict[str, int]:
    """Return the limits of concurrent runs, by slug of the limited agents."""
    overrides = _known.items()
    return {
        slug: switch.max_running for slug, switch in overrides if switch.max_running is not None
    }
