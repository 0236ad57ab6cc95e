"""Mounts: the paths below an agent at which dialects are served.

The detecting mounts are for clients that know only an address; every card names the pinned mount of its dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from a2a_tasks.protocol.dialects import CLASSES

__all__ = ["DETECTING", "MOUNTS", "Mount", "split"]


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A path below an agent: its pinned dialect, and the A2A-Versions it admits besides an absent one."""

    path: str
    #: Code of the dialect; empty = detected from the request.
    dialect: str = ""
    admits: frozenset[str] = frozenset()


DETECTING = Mount(path="a2a")
#: By dialect: the mount pinned to it.
MOUNTS: Mapping[str, Mount] = {
    each.code: Mount(path=f"a2a/{each.path}", dialect=each.code, admits=each.admits)
    for each in CLASSES
}
_NAMED = {mount.path.removeprefix("a2a/"): mount for mount in MOUNTS.values()}


def split(segments: Sequence[str]) -> tuple[Mount, list[str]]:
    """Return the mount that a path below an agent begins with, and the segments after it.

    Below `a2a`, every path without the name of a pinned mount belongs to the detecting mount.
    """
    if not segments or segments[0] != "a2a":
        return DETECTING, list(segments)
    pinned = _NAMED.get(segments[1]) if len(segments) > 1 else None
    return (pinned, list(segments[2:])) if pinned else (DETECTING, list(segments[1:]))
