"""The demo agent in forms for conformance kits: without capabilities, and with a required extension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_tasks.agents import Extension
from a2a_tasks.caller import Caller
from examples.demo.agents import Demo


class Bare(Demo):
    """The demo agent without capabilities."""

    slug = "bare"
    name = "Bare"
    description = "The demo agent without streaming and webhooks."
    streaming = False
    push_notifications = False


class Strict(Demo):
    """The demo agent with a required extension."""

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
