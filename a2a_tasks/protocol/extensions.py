"""Extensions of the protocol (A2A 1.0 §4.6): requested in a header, activated if the agent declares them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from a2a_tasks.protocol.errors import ExtensionSupportRequired

__all__ = ["activate", "parse_requested"]


def parse_requested(values: Iterable[str]) -> list[str]:
    """Return the URIs in `A2A-Extensions` headers: comma-separated, perhaps repeated."""
    return [uri for value in values for part in value.split(",") if (uri := part.strip())]


def activate(
    requested: Collection[str], declared: Collection[str], required: Collection[str]
) -> list[str]:
    """Return the active extensions: requested and declared; unknown ones are ignored (§4.6.2).

    Raises ExtensionSupportRequired if a required extension was not requested.
    """
    for uri in required:
        if uri not in requested:
            raise ExtensionSupportRequired(f"The agent requires the extension {uri}", uri=uri)
    return [uri for uri in declared if uri in requested]
