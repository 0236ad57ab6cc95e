"""Cards of agents: the public one in each form, signed, for clients and for operators on the pages; GetAgentCard (of the
dialect seed-0) and GetExtendedAgentCard (A2A 1.0 §3.1.11)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from a2a_tasks.agents import Agent
from a2a_tasks.agents.cards import card_of, url_of
from a2a_tasks.conf import of_settings
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.dialects import DIALECTS, cards
from a2a_tasks.protocol.errors import (
    ExtendedAgentCardNotConfigured,
    ExtendedCardUndeclared,
    Unauthenticated,
)
from a2a_tasks.protocol.mounts import DETECTING, MOUNTS, Mount
from a2a_tasks.protocol.requests import GetAgentCardRequest, GetExtendedAgentCardRequest
from a2a_tasks.signatures.ring import Seal

__all__ = ["FORMS", "get_agent_card", "get_extended_agent_card", "make_card"]

#: By form: the function that makes it from the host's own card, and the mount whose URL it contains.
FORMS: Mapping[str, tuple[Callable[[Mapping[str, Any], str], Mapping[str, Any]], Mount]] = {
    **{code: (dialect.card, MOUNTS[code]) for code, dialect in DIALECTS.items()},
    "hybrid": (cards.hybrid, MOUNTS["v03"]),
    "legacy": (cards.legacy, DETECTING),
}


@of_settings
@functools.lru_cache(maxsize=1024)
def make_card(agent: Agent, base_url: str, form: str, seal: Seal) -> Mapping[str, Any]:
    """Return the card in one of `FORMS`, as a host with that base URL (without a trailing slash) serves it."""
    make, mount = FORMS[form]
    card = make(card_of(agent, base_url), url_of(agent, base_url, mount))
    return seal.on(card, form, base_url)


async def get_agent_card(request: GetAgentCardRequest, call: CallContext) -> Mapping[str, Any]:
    """Return the public card."""
    return card_of(call.agent, call.base_url)


async def get_extended_agent_card(
    request: GetExtendedAgentCardRequest, call: CallContext
) -> Mapping[str, Any]:
    """Return the extended card. Raises ExtendedCardUndeclared, Unauthenticated, ExtendedAgentCardNotConfigured."""
    if not call.agent.has_extended_card:
        raise ExtendedCardUndeclared("The agent has no extended card")
    if call.caller.anonymous:
        raise Unauthenticated
    card = call.agent.extended_card(card_of(call.agent, call.base_url), call.caller)
    if card is None:
        raise ExtendedAgentCardNotConfigured
    return card
