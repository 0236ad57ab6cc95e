"""The demo agent as conformance kits test refusals with it: without capabilities, and with an extension that is required."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_tasks.agents import Extension
from a2a_tasks.caller import Caller
from examples.demo.agents import Demo


class Bare(Demo):
    """No capability at all."""

    slug = "bare"
    name = "Bare"
    description = "The demo agent without streaming and webhooks."
    streaming = False
    push_notifications = False


class Strict(Demo):
    """Requires an extension of every client."""

    slug = "strict"
    name = "Strict"
    description = "The demo agent for clients that announce its required extension."
    has_extended_card = True
    extensions = (
        Extension(
            "urn:a2a:tck:required-extension",
            description="Must be announced in A2A-Extensions.",
            required=True,
        ),
    )

    def extended_card(self, card: Mapping[str, Any], caller: Caller) -> Mapping[str, Any]:
        """Greet the caller by name in the description."""
        return {**card, "description": f"{card['description']} Welcome, {caller.principal}."}
