"""A2A 0.1 (May 2025): the wire of April 2025 with more prose."""

from __future__ import annotations

from a2a_tasks.protocol.dialects.v00 import V00

__all__ = ["V01"]


class V01(V00):
    """The dialect; only its name is new."""

    code, version, title = "v01", "0.1", "0.1"
