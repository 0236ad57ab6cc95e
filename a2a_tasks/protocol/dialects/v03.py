"""A2A 0.3 (July 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.dialects.dialect import Dialect
from a2a_tasks.protocol.dialects.kinds import Kinds
from a2a_tasks.protocol.dialects.listing import read_word_listing
from a2a_tasks.protocol.dialects.signed_members import CardSignature
from a2a_tasks.protocol.dialects.v03_rest import ROUTES, V03Rest
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.requests import ListTasksRequest

__all__ = ["V03"]


class V03(Kinds):
    """The dialect 0.3; the code it shares with 0.2 is in `kinds`, its form over HTTP+JSON in `v03_rest`."""

    code, version, title = "v03", "0.3", "0.3"
    features = replace(Kinds.features, webhook_id="default")
    path, admits = "0.3", frozenset({"0.3", "0.2"})
    card_members = Kinds.card_members | {"preferredTransport"}
    signature = CardSignature()
    methods = {
        **Kinds.methods,
        "tasks/list": "ListTasks",
        "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
        "agent/authenticatedExtendedCard": "GetExtendedAgentCard",  # a misprint in the specification
    }
    routes = ROUTES

    @cached_property
    def rest(self) -> Dialect:
        return V03Rest(self.switches)

    def read_list(self, fields: Fields) -> ListTasksRequest:
        return read_word_listing(fields)

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        return cards.v03(card, url)
