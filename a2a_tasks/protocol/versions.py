"""The A2A-Version of a request (A2A 1.0 §3.6): a header or a query parameter, Major.Minor."""

from __future__ import annotations

import re
from collections.abc import Collection

from a2a_tasks.protocol.errors import VersionNotSupported

__all__ = ["SUPPORTED", "read_version", "unsupported"]

#: Every version spoken here, newest first.
SUPPORTED = ("1.0", "0.3", "0.2", "0.1", "0.0")
_VERSION = re.compile(r"(\d+\.\d+)(\.\d+)?", re.ASCII)


def unsupported(asked: str, admitted: Collection[str] = SUPPORTED) -> VersionNotSupported:
    """The error for a version that is not spoken here; `admitted` are those that are."""
    spoken = [version for version in SUPPORTED if version in admitted]
    return VersionNotSupported(requestedVersion=asked, supportedVersions=",".join(spoken))


def read_version(header: str, query: str, admitted: Collection[str] = SUPPORTED) -> str:
    """The version asked for, without its patch number; empty if none was.

    Raises VersionNotSupported for one that is not `admitted`, and when header and query disagree.
    """
    said = [text for text in (header.strip(), query.strip()) if text]
    found = {match[1] if (match := _VERSION.fullmatch(text)) else "" for text in said}
    if len(found) > 1 or not found <= set(admitted):
        raise unsupported(said[0], admitted)
    return "".join(found)
