"""Grants: who may use and see agents that are listed (`A2A_GRANTS`), which are missing to everybody else; who operates any.

All of them are read at once and believed for A2A_CREDENTIAL_SECONDS, so that requests do not ask the database.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.core.signals import setting_changed
from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import receiver

from a2a_tasks.agents.agent import SLUG
from a2a_tasks.agents.security import is_scope
from a2a_tasks.audit import Action
from a2a_tasks.caller import Caller, is_tenant
from a2a_tasks.conf import conf
from a2a_tasks.models import ALL, Grant, Right
from a2a_tasks.store import audit
from a2a_tasks.store.group import Group

__all__ = [
    "Right",
    "flaw_of",
    "forget",
    "grant",
    "granted",
    "is_grantee",
    "operated_in_thread",
    "rights",
    "rights_in_thread",
    "withdraw",
]

#: Principals, as `access` names them.
_PRINCIPAL = re.compile(r"(key|jwt|user|cert):.+")
LONGEST = 256
#: Whoever may do this may see the agent, too.
_WITH = {Right.USE: {Right.USE, Right.SEE}, Right.OPERATE: {Right.OPERATE, Right.SEE}}
#: Rights by agent and grantee.
Given = Mapping[str, Mapping[str, frozenset[Right]]]


class _Known(NamedTuple):
    given: Given
    until: float


_known: _Known | None = None


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Read them anew with the next request of this process."""
    global _known  # noqa: PLW0603 - one memory a process
    _known = None


# --- what is granted ----------------------------------------------------------------------------


async def rights(caller: Caller, agent: str) -> frozenset[Right]:
    """What a caller was granted with the agent of that slug. Raises Overloaded if the database is away."""
    known = _fresh()
    return _held(await _reading(None) if known is None else known, caller, agent)


def rights_in_thread(caller: Caller, agent: str) -> frozenset[Right]:
    """The same for pages, which are made in threads with a database of their own."""
    known = _fresh()
    return _held(_read() if known is None else known, caller, agent)


def operated_in_thread(caller: Caller) -> frozenset[str] | None:
    """The agents that a caller was granted to operate, those that are not hosted here too; None = all. For threads."""
    known = _fresh()
    given = _read() if known is None else known
    agents = frozenset(slug for slug in given if Right.OPERATE in _held(given, caller, slug))
    return None if ALL in agents else agents


def _held(given: Given, caller: Caller, agent: str) -> frozenset[Right]:
    named = list(_names(caller))
    held: set[Right] = set()
    for slug in (agent, ALL):
        grantees = given.get(slug, {})
        held.update(*(grantees.get(name, ()) for name in named))
    return frozenset(held)


def _names(caller: Caller) -> Iterator[str]:
    """What a caller is called in grants."""
    yield ALL
    if not caller.anonymous:
        yield caller.principal
        yield from (f"scope:{scope}" for scope in caller.scopes)
        if caller.tenant:
            yield f"tenant:{caller.tenant}"


def _fresh() -> Given | None:
    return _known.given if _known is not None and time.monotonic() < _known.until else None


def _read() -> Given:
    global _known  # noqa: PLW0603
    until = time.monotonic() + conf.CREDENTIAL_SECONDS
    given: dict[str, dict[str, frozenset[Right]]] = defaultdict(dict)
    for agent, grantee, right in Grant.objects.values_list("agent", "grantee", "right"):
        held = given[agent].get(grantee, frozenset())
        given[agent][grantee] = held | _WITH.get(Right(right), {Right(right)})
    _known = _Known(given, until)
    return given


def _read_for(asked: Sequence[None]) -> list[Given | Exception]:
    return [_read()] * len(asked)


#: Once for all who ask at the same time.
_reading: Group[None, Given] = Group(_read_for)


# --- granting -----------------------------------------------------------------------------------


def is_grantee(text: str) -> bool:
    """May something be granted to this?"""
    kind, _, name = text.partition(":")
    if kind == "scope":
        return is_scope(name)
    if kind == "tenant":
        return bool(name) and is_tenant(name)
    principal = _PRINCIPAL.fullmatch(text) and text.isprintable() and len(text) <= LONGEST
    return text == ALL or bool(principal)


def flaw_of(agent: str, grantee: str) -> str:
    """What is wrong with a grant; empty = nothing. The agent need not be there yet."""
    if agent != ALL and not SLUG.fullmatch(agent):
        return f"{agent!r} cannot be an agent; {ALL} stands for all"
    if not is_grantee(grantee):
        kinds = "key:..., jwt:..., user:..., cert:..., scope:... and tenant:..."
        return f"{grantee!r} is nobody; there are {kinds}, and {ALL} for everybody"
    return ""


def grant(agent: str, grantee: str, right: str) -> bool:
    """Grant it; False if it was granted before. It holds at once here, in A2A_CREDENTIAL_SECONDS everywhere.

    Raises ValueError for what cannot be granted.
    """
    if flaw := flaw_of(agent, grantee):
        raise ValueError(flaw)
    with transaction.atomic():
        row, made = Grant.objects.get_or_create(agent=agent, grantee=grantee, right=Right(right))
        if made:
            _note(Action.GRANT_ADD, row)
    forget()
    return made


def withdraw(agent: str, grantee: str, right: str = "") -> int:
    """Take a right away again, or all that this agent and grantee have together. Returns how many there were."""
    which = Grant.objects.filter(agent=agent, grantee=grantee)
    with transaction.atomic():
        rows = list((which.filter(right=right) if right else which).select_for_update())
        for row in rows:
            row.delete()
            _note(Action.GRANT_REMOVE, row)
    forget()
    return len(rows)


def _note(action: Action, row: Grant) -> None:
    audit.note(action, row.grantee, detail={"agent": row.agent, "right": row.right})


def granted() -> QuerySet[Grant]:
    """All grants, by agent and grantee."""
    return Grant.objects.order_by("agent", "grantee", "right")
