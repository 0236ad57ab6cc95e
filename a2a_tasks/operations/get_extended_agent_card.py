"""GetExtendedAgentCard (A2A 1.0 §3.1.11): for authenticated callers of agents that have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_tasks.agents.cards import card_of
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import (
    ExtendedAgentCardNotConfigured,
    ExtendedCardUndeclared,
    Unauthenticated,
)
from a2a_tasks.protocol.requests import GetExtendedAgentCardRequest

__all__ = ["get_extended_agent_card"]


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
