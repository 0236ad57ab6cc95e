"""The abilities of the client of a request, which says them each time; the protocol forbids to remember them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = ["TASKS", "Abilities"]

#: The extension of tasks.
TASKS = "io.modelcontextprotocol/tasks"


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a client."""

    #: It speaks 2026-07-28 or newer: it gets questions, and its closed stream is a cancellation.
    modern: bool
    #: It takes handles of tasks.
    tasks: bool
    #: It asks its user by a form, or sends the user to a page.
    form: bool
    url: bool

    @classmethod
    def of(cls, ctx: Any) -> Abilities:
        """Return the abilities that a request declares."""
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        declared = ctx.session.client_capabilities if modern else None
        asking = declared.elicitation if declared else None
        return cls(
            modern=modern,
            tasks=bool(declared and TASKS in (declared.extensions or {})),
            form=bool(asking and (asking.form is not None or asking.url is None)),
            url=bool(asking and asking.url is not None),
        )
