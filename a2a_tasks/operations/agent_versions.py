"""The version of an agent that answers a message: that of its conversation, or one for a new conversation."""

from __future__ import annotations

from typing import NamedTuple

from a2a_tasks.agents import Agent, registry, switches, versions
from a2a_tasks.agents.declaration import AnnouncedAgent, name_queue
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.versions import Pinned, find_pinned, pin

__all__ = ["MessageRoute", "find_route"]


class MessageRoute(NamedTuple):
    """The version of the agent that answers, the queue of its run, and functions that write rows with the message."""

    agent: Agent
    queue: str
    companions: tuple[Companion, ...] = ()


async def find_route(
    agent: Agent, scope: OwnerScope, *, task_id: str = "", context_id: str = ""
) -> MessageRoute:
    """Return the route of a message to a task, to a context, or to a new conversation of this id.

    The conversation keeps the version with which it begins. An agent without announced versions costs no query.
    """
    slug = agent.slug
    if not versions.has(slug):
        return MessageRoute(agent, switches.queue_of(agent))
    pinned = await _find(scope, task_id, context_id)
    if pinned is None:
        chosen = registry.choose(slug, context_id) or agent
    elif pinned.version:  # its queue is known even if the version was removed
        known = versions.find(slug, pinned.version)
        queue = name_queue(slug, pinned.version)
        return MessageRoute(known.agent if known else agent, queue, (pin(pinned.version),))
    elif pinned.version is None:  # it began when the host had its own code alone
        chosen = registry.find_own(slug) or registry.find_hosted(slug) or agent
    else:
        own = registry.find_own(slug)
        queue = switches.queue_of(own) if own else "agents"
        return MessageRoute(own or agent, queue, (pin(""),))
    version = chosen.version if isinstance(chosen, AnnouncedAgent) else ""
    return MessageRoute(chosen, switches.queue_of(chosen), (pin(version),))


async def _find(scope: OwnerScope, task_id: str, context_id: str) -> Pinned | None:
    if "\x00" in task_id + context_id:
        return None
    found = None
    if task_id:
        found = await run_in_thread(find_pinned, scope, task_id=task_id)
    if found is None and context_id:
        found = await run_in_thread(find_pinned, scope, context_id=context_id)
    return found
