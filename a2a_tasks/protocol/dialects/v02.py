"""A2A 0.2 (0.2.0 to 0.2.6, May to July 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.dialects.dialect import Dialect
from a2a_tasks.protocol.dialects.kinds import Kinds
from a2a_tasks.protocol.dialects.v03_rest import ROUTES, V03Rest
from a2a_tasks.protocol.rest import Route

__all__ = ["V02"]


class _V02Rest(V03Rest):
    """0.2 over HTTP+JSON: the form that 0.3 made official, and the extended card as a page."""

    code, version, title = "v02", "0.2", "0.2"
    routes = (*ROUTES, Route(("GET",), "agent/authenticatedExtendedCard", "GetExtendedAgentCard"))

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        return cards.v02(card, url)


class V02(Kinds):
    """The dialect 0.2; the code it shares with 0.3 is in `kinds`."""

    code, version, title = "v02", "0.2", "0.2"
    features = replace(Kinds.features, one_webhook=True)
    path, admits = "0.2", frozenset({"0.2"})
    routes = _V02Rest.routes

    @cached_property
    def rest(self) -> Dialect:
        return _V02Rest(self.switches)

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        return cards.v02(card, url)
