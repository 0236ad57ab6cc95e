"""GetAgentCard: the public card as an operation, for dialects that have it (seed-0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_tasks.agents.cards import card_of
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.requests import GetAgentCardRequest

__all__ = ["get_agent_card"]


async def get_agent_card(request: GetAgentCardRequest, call: CallContext) -> Mapping[str, Any]:
    """Return the public card."""
    return card_of(call.agent, call.base_url)
