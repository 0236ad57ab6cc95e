"""GetAgentCard: the public card as an operation, where a dialect has it as one (seed-0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_tasks.agents.cards import card_of
from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.requests import GetAgentCardRequest

__all__ = ["get_agent_card"]


async def get_agent_card(request: GetAgentCardRequest, call: Call) -> Mapping[str, Any]:
    """The public card."""
    return card_of(call.agent, call.base_url)
