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


def read_version(header: str, query: str) -> str:
    """The version asked for, without its patch number; empty if none was.

    Raises VersionNotSupported for one that is not spoken here, and when header and query disagree.
    """
    said = [text for text in (header.strip(), query.strip()) if text]
    found = {_version(text) for text in said}
    if len(found) > 1 or None in found:
        raise unsupported(said[0])
    return found.pop() or "" if found else ""


def _version(text: str) -> str | None:
    match = _VERSION.fullmatch(text)
    return match[1] if match and match[1] in SUPPORTED else None
