"""The A2A-Version of a request (A2A 1.0 §3.6): a header or a query parameter, Major.Minor."""

from __future__ import annotations

import re
from collections.abc import Collection

from a2a_tasks.protocol.dialects import CLASSES
from a2a_tasks.protocol.errors import VersionNotSupported

__all__ = ["SUPPORTED", "read_version", "refuse_version"]

#: All supported versions, newest first.
SUPPORTED = tuple(dict.fromkeys(each.version for each in reversed(CLASSES) if each.version))
_VERSION = re.compile(r"(\d+\.\d+)(\.\d+)?", re.ASCII)


def refuse_version(requested: str, admitted: Collection[str] = SUPPORTED) -> VersionNotSupported:
    """Return the error for an unsupported version; `admitted` are the supported ones."""
    spoken = [version for version in SUPPORTED if version in admitted]
    return VersionNotSupported(requestedVersion=requested, supportedVersions=",".join(spoken))


def read_version(header: str, query: str, admitted: Collection[str] = SUPPORTED) -> str:
    """Return the requested version, without its patch number; empty if none was requested.

    Raises VersionNotSupported for a version that is not `admitted`, and when header and query disagree.
    """
    requested = [text for text in (header.strip(), query.strip()) if text]
    found = {match[1] if (match := _VERSION.fullmatch(text)) else "" for text in requested}
    if len(found) > 1 or not found <= set(admitted):
        raise refuse_version(requested[0], admitted)
    return "".join(found)
