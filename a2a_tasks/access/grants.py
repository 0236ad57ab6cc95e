"""Grants: the right to see and use listed agents (`A2A_GRANTS`), and to operate any agent.

A listed agent does not exist for callers without a grant. All grants are read at once and cached for
A2A_CREDENTIAL_SECONDS, so that requests do not query the database.
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
from a2a_tasks.models import ALL, Grant, GrantRight
from a2a_tasks.store import audit
from a2a_tasks.store.batched_call import BatchedCall

__all__ = [
    "GrantRight",
    "flaw_of",
    "forget",
    "grant",
    "list_grants",
    "is_grantee",
    "find_operated_in_thread",
    "rights",
    "rights_in_thread",
    "withdraw",
]

#: The principals that `access` assigns.
_PRINCIPAL = re.compile(r"(key|jwt|user|cert):.+")
MAX_LENGTH = 256
#: The rights that a granted right includes: both include the right to see the agent.
_WITH = {
    GrantRight.USE: {GrantRight.USE, GrantRight.SEE},
    GrantRight.OPERATE: {GrantRight.OPERATE, GrantRight.SEE},
}
#: Rights by agent and grantee.
Given = Mapping[str, Mapping[str, frozenset[GrantRight]]]


class _CachedGrants(NamedTuple):
    given: Given
    until: float


_known: _CachedGrants | None = None


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Clear the cache: the next request of this process reads the grants anew."""
    global _known  # noqa: PLW0603 - one cache per process
    _known = None


# --- reading ------------------------------------------------------------------------------------


async def rights(caller: Caller, agent: str) -> frozenset[GrantRight]:
    """Return the rights of a caller to the agent of that slug. Raises Overloaded if the database is away."""
    cached = _fresh()
    return _collect_rights(await _reading(None) if cached is None else cached, caller, agent)


def rights_in_thread(caller: Caller, agent: str) -> frozenset[GrantRight]:
    """Return the same as `rights`, for pages, whose threads have database connections of their own."""
    cached = _fresh()
    return _collect_rights(_read() if cached is None else cached, caller, agent)


def find_operated_in_thread(caller: Caller) -> frozenset[str] | None:
    """Return the agents that a caller may operate, also those that are not hosted here; None = all. For threads."""
    cached = _fresh()
    given = _read() if cached is None else cached
    agents = frozenset(
        slug for slug in given if GrantRight.OPERATE in _collect_rights(given, caller, slug)
    )
    return None if ALL in agents else agents


def _collect_rights(given: Given, caller: Caller, agent: str) -> frozenset[GrantRight]:
    named = list(_names(caller))
    rights: set[GrantRight] = set()
    for slug in (agent, ALL):
        grantees = given.get(slug, {})
        rights.update(*(grantees.get(name, ()) for name in named))
    return frozenset(rights)


def _names(caller: Caller) -> Iterator[str]:
    """Yield the names by which grants refer to a caller."""
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
    given: dict[str, dict[str, frozenset[GrantRight]]] = defaultdict(dict)
    for agent, grantee, right in Grant.objects.values_list("agent", "grantee", "right"):
        rights = given[agent].get(grantee, frozenset())
        given[agent][grantee] = rights | _WITH.get(GrantRight(right), {GrantRight(right)})
    _known = _CachedGrants(given, until)
    return given


def _read_for(calls: Sequence[None]) -> list[Given | Exception]:
    return [_read()] * len(calls)


#: The read of all grants, shared by concurrent requests.
_reading: BatchedCall[None, Given] = BatchedCall(_read_for)


# --- granting -----------------------------------------------------------------------------------


def is_grantee(text: str) -> bool:
    """Return whether the text is a valid grantee."""
    kind, _, name = text.partition(":")
    if kind == "scope":
        return is_scope(name)
    if kind == "tenant":
        return bool(name) and is_tenant(name)
    principal = _PRINCIPAL.fullmatch(text) and text.isprintable() and len(text) <= MAX_LENGTH
    return text == ALL or bool(principal)


def flaw_of(agent: str, grantee: str) -> str:
    """Return the mistake in a grant; empty = none. The agent need not exist yet."""
    if agent != ALL and not SLUG.fullmatch(agent):
        return f"{agent!r} cannot be an agent; {ALL} stands for all"
    if not is_grantee(grantee):
        kinds = "key:..., jwt:..., user:..., cert:..., scope:... and tenant:..."
        return f"{grantee!r} is no principal; there are {kinds}, and {ALL} for all"
    return ""


def grant(agent: str, grantee: str, right: str) -> bool:
    """Grant a right; False if it was granted before. Raises ValueError for an invalid grant.

    The grant takes effect at once in this process, and within A2A_CREDENTIAL_SECONDS in all others.
    """
    if flaw := flaw_of(agent, grantee):
        raise ValueError(flaw)
    with transaction.atomic():
        row, made = Grant.objects.get_or_create(
            agent=agent, grantee=grantee, right=GrantRight(right)
        )
        if made:
            _note(Action.GRANT_ADD, row)
    forget()
    return made


def withdraw(agent: str, grantee: str, right: str = "") -> int:
    """Withdraw a right, or all rights of this grantee to this agent. Returns the number of withdrawn rights."""
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


def list_grants() -> QuerySet[Grant]:
    """Return all grants, ordered by agent and grantee."""
    return Grant.objects.order_by("agent", "grantee", "right")
