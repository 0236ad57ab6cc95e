"""Somebody with a link that works once hands over what an agent asked for; the task goes on, and its log says only that."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from a2a_tasks.agents import registry
from a2a_tasks.agents.content import text as text_part
from a2a_tasks.audit import Action
from a2a_tasks.execution.secrets import url_of
from a2a_tasks.operations.acceptance import accept
from a2a_tasks.operations.line import place_in_line
from a2a_tasks.operations.on_behalf import call_for, request_for
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound, TaskNotWaiting
from a2a_tasks.protocol.operators import HANDED_OVER
from a2a_tasks.store import handed
from a2a_tasks.store.handed import Asking, UselessLink
from a2a_tasks.store.hop import hop
from a2a_tasks.store.waiting import asked

__all__ = ["FreshLink", "UselessLink", "asked_by", "fresh_link", "hand_over", "name_of"]

logger = logging.getLogger(__name__)
#: Characters of one secret: a key file fits.
LONGEST = 16_384


def name_of(slug: str) -> str:
    """The agent's name for people."""
    agent = registry.hosted(slug)
    return agent.name if agent is not None else slug


async def asked_by(token: str) -> Asking:
    """What somebody with this link is asked for. Raises UselessLink, Overloaded."""
    return await hop(handed.find, token)


@dataclass(frozen=True, kw_only=True)
class FreshLink:
    """A link for an operator to give to whom it concerns."""

    url: str
    expires_at: datetime.datetime


async def fresh_link(task: int, *, by: str) -> FreshLink:
    """A fresh link to what the task with this primary key asks for; the one before opens nothing any more.

    Raises TaskNotFound, TaskNotWaiting, Overloaded.
    """
    made = await hop(handed.relink, task)
    logger.info("task %s: operator %s made a link to hand over what it asks for", task, by)
    return FreshLink(url=url_of(made.token), expires_at=made.expires_at)


async def hand_over(token: str, values: Mapping[str, str]) -> None:
    """Keep what was handed over for the turn that comes, and have the task go on. The link works no more.

    `values` by the names that were asked for. Raises UselessLink; InvalidParams that names what is missing or too long;
    AgentOff, RateLimited, Overloaded: then the link still works.
    """
    asking = await asked_by(token)
    given = {name: _checked(name, values) for name in asking.names}
    found = await hop(asked, asking.task)
    if found is None:
        raise UselessLink
    call = call_for(found, Action.SECRET_HANDED)
    said = text_part(f"Handed over: {', '.join(asking.names)}.")
    request = request_for(found, [said], {HANDED_OVER: list(asking.names)})
    try:
        with place_in_line():
            await accept(request, call, None, handed.keeping(token, given))
    except (TaskNotFound, TaskNotWaiting):  # it was answered, or cancelled, at this moment
        raise UselessLink from None


def _checked(name: str, values: Mapping[str, str]) -> str:
    """Raises InvalidParams, which says nothing of what was given."""
    given = values.get(name, "")
    if not given:
        raise InvalidParams.field(name, "is missing")
    if len(given) > LONGEST:
        raise InvalidParams.field(name, f"has more than {LONGEST} characters")
    if "\x00" in given:
        raise InvalidParams.field(name, "has a character that no secret has")
    return given
