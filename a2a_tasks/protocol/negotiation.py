"""Service parameters of A2A 1.0 (§3.2.6, §3.6, §4.6): version and extensions, from headers or the query."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from a2a_tasks.protocol.dialects import DIALECTS, SUPPORTED_VERSIONS, Dialect
from a2a_tasks.protocol.errors import ExtensionSupportRequired, VersionNotSupported

__all__ = ["activate", "choose", "requested_extensions"]

_VERSION = re.compile(r"(\d+\.\d+)(\.\d+)?")
DEFAULT = "1.0"
#: What an absent version means by §3.6.2.
BY_THE_LETTER = "0.3"


def choose(header: str, query: str, *, strict: bool = False) -> Dialect:
    """The dialect a request asks for; the patch number is ignored (§3.6.1).

    An absent version is read as 1.0, because released clients leave it out; `strict` reads it as 0.3 (§3.6.2).
    Raises VersionNotSupported, also when header and query disagree.
    """
    said = [text for text in (header.strip(), query.strip()) if text]
    asked = said or [BY_THE_LETTER if strict else DEFAULT]
    found = {_dialect(text) for text in asked}
    dialect = found.pop()
    if dialect is None or found:
        raise VersionNotSupported(
            requestedVersion=asked[0], supportedVersions=",".join(SUPPORTED_VERSIONS)
        )
    return dialect


def _dialect(version: str) -> Dialect | None:
    match = _VERSION.fullmatch(version)
    return DIALECTS.get(match[1]) if match else None


def requested_extensions(values: Iterable[str]) -> list[str]:
    """The URIs in `A2A-Extensions` headers: comma-separated, perhaps repeated."""
    return [uri for value in values for part in value.split(",") if (uri := part.strip())]


def activate(
    requested: Collection[str], declared: Collection[str], required: Collection[str]
) -> list[str]:
    """The extensions in force: requested and declared; unknown ones are ignored (§4.6.2).

    Raises ExtensionSupportRequired if a required one was not requested.
    """
    for uri in required:
        if uri not in requested:
            raise ExtensionSupportRequired(f"The agent requires the extension {uri}", uri=uri)
    return [uri for uri in declared if uri in requested]
