"""Credential requests: the holder of a one-time link hands over secrets, which the task's log does not contain."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from a2a_console.queue.on_behalf import call_for, request_for
from a2a_console.queue.waiting import find_question
from a2a_tasks.agents import registry
from a2a_tasks.agents.emission import text as text_part
from a2a_tasks.audit import Action
from a2a_tasks.execution.sources import url_of
from a2a_tasks.operations.accept_message import accept
from a2a_tasks.operations.backpressure import limit_waiting
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound, TaskNotWaiting
from a2a_tasks.protocol.operators import HANDED_OVER
from a2a_tasks.store import handed_secrets
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.handed_secrets import SecretRequest, UselessLink

__all__ = ["FreshLink", "UselessLink", "find_request", "fresh_link", "hand_over", "name_of"]

logger = logging.getLogger(__name__)
#: The largest number of characters of one secret: room for a key file.
MAX_LENGTH = 16_384


def name_of(slug: str) -> str:
    """Return the display name of the agent."""
    agent = registry.find_hosted(slug)
    return agent.name if agent is not None else slug


async def find_request(token: str) -> SecretRequest:
    """Return the request behind this link. Raises UselessLink, Overloaded."""
    return await run_in_thread(handed_secrets.find, token)


@dataclass(frozen=True, kw_only=True)
class FreshLink:
    """A link that an operator gives to the holder of the secrets."""

    url: str
    expires_at: datetime.datetime


async def fresh_link(task: int, *, by: str) -> FreshLink:
    """Return a fresh link for the secrets that the task with this primary key asks for. The link before stops working.

    Raises TaskNotFound, TaskNotWaiting, Overloaded.
    """
    made = await run_in_thread(handed_secrets.relink, task)
    logger.info("task %s: operator %s made a link to hand over what it asks for", task, by)
    return FreshLink(url=url_of(made.token), expires_at=made.expires_at)


async def hand_over(token: str, values: Mapping[str, str]) -> None:
    """Store the secrets for the next turn and continue the task. The link stops working.

    `values` has the secrets by their requested names. Raises UselessLink; InvalidParams, which names missing and too
    long ones; AgentOff, RateLimited, Overloaded: after these the link still works.
    """
    asking = await find_request(token)
    given = {name: _check(name, values) for name in asking.names}
    found = await run_in_thread(find_question, asking.task)
    if found is None:
        raise UselessLink
    call = call_for(found, Action.SECRET_HANDED)
    notice = text_part(f"Handed over: {', '.join(asking.names)}.")
    request = request_for(found, [notice], {HANDED_OVER: list(asking.names)})
    try:
        with limit_waiting():
            await accept(request, call, None, handed_secrets.keep_values(token, given))
    except (TaskNotFound, TaskNotWaiting):  # the task was answered or cancelled at this moment
        raise UselessLink from None


def _check(name: str, values: Mapping[str, str]) -> str:
    """Return the secret of this name. Raises InvalidParams, whose text contains nothing of the secret."""
    given = values.get(name, "")
    if not given:
        raise InvalidParams.field(name, "is missing")
    if len(given) > MAX_LENGTH:
        raise InvalidParams.field(name, f"has more than {MAX_LENGTH} characters")
    if "\x00" in given:
        raise InvalidParams.field(name, "has a character that no secret has")
    return given
