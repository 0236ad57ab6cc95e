"""The version of an agent that answers a message: that of its conversation, or one for a new conversation."""

from __future__ import annotations

from typing import NamedTuple

from a2a_tasks.agents import Agent, registry, switches
from a2a_tasks.agents.declaration import AnnouncedAgent, name_queue
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.versions import Pinned, find_pinned, pin

__all__ = ["MessageRoute", "find_route"]


class MessageRoute(NamedTuple):
    """The queue of the run, and rows that are written with a new task."""

    queue: str
    companions: tuple[Companion, ...] = ()


async def find_route(
    agent: Agent, scope: OwnerScope, *, task_id: str = "", context_id: str = ""
) -> MessageRoute:
    """Return the route of a message to a task, to a context, or to a new conversation of this id.

    The conversation keeps the version with which it begins. An agent without announced versions costs no query.
    """
    if not registry.has_versions(agent.slug):
        return MessageRoute(switches.queue_of(agent))
    pinned = await _find(scope, task_id, context_id)
    if pinned is not None and pinned.version is not None:
        return MessageRoute(_name_queue(agent.slug, pinned.version), (pin(pinned.version),))
    chosen = registry.find_own(agent.slug) if pinned else None
    chosen = chosen or registry.choose(agent.slug, context_id) or agent
    version = chosen.version if isinstance(chosen, AnnouncedAgent) else ""
    return MessageRoute(switches.queue_of(chosen), (pin(version),))


async def _find(scope: OwnerScope, task_id: str, context_id: str) -> Pinned | None:
    if "\x00" in task_id + context_id:
        return None
    found = None
    if task_id:
        found = await run_in_thread(find_pinned, scope, task_id=task_id)
    if found is None and context_id:
        found = await run_in_thread(find_pinned, scope, context_id=context_id)
    return found


def _name_queue(slug: str, version: str) -> str:
    """Return the queue of a version, also of one that was removed; an empty version is the host's own code."""
    if version:
        return name_queue(slug, version)
    own = registry.find_own(slug)
    return switches.queue_of(own) if own else "agents"
