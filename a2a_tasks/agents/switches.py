"""What operators have switched while the host runs, as this process last read it (`access/switched.py` reads it)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from a2a_tasks.agents.agent import Agent

__all__ = ["ON", "Switch", "draining", "limits", "off", "put", "queue_of", "queues"]


@dataclass(frozen=True, slots=True)
class Switch:
    """What is set of one agent."""

    #: "on", "draining" (no new tasks) or "off" (to clients there is none).
    state: str = "on"
    #: Runs of it at once, on the whole host; None = any number.
    max_running: int | None = None
    #: Where its runs wait; empty = where its class says.
    queue: str = ""


#: An agent that nothing is set of.
ON = Switch()
_known: Mapping[str, Switch] = {}


def put(found: Mapping[str, Switch]) -> None:
    """These are set, by slug; nothing of any other agent."""
    global _known  # noqa: PLW0603 - one a process
    _known = found


def off() -> set[str]:
    """The agents that are off."""
    return {slug for slug, switch in _known.items() if switch.state == "off"}


def draining(slug: str) -> bool:
    """Does the agent take no new tasks?"""
    return _known.get(slug, ON).state == "draining"


def queue_of(agent: Agent) -> str:
    """Where runs of the agent wait."""
    return _known.get(agent.slug, ON).queue or agent.queue


def queues() -> set[str]:
    """The queues that agents were moved to."""
    return {switch.queue for switch in _known.values() if switch.queue}


def limits() -> dict[str, int]:
    """The agents of which only so many runs may be under way at once."""
    known = _known.items()
    return {slug: switch.max_running for slug, switch in known if switch.max_running is not None}
