"""Where a dialect can be asked for: the paths below an agent, as data.

The detecting mounts are for whoever has only an address; every card names the pinned mount of its reader's dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["DETECTING", "MOUNTS", "Mount", "split"]


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A path below an agent: the dialect it is pinned to, and the A2A-Versions it admits beside none."""

    path: str
    #: Code of the dialect; empty = the request is looked at.
    dialect: str = ""
    admits: frozenset[str] = frozenset()


DETECTING = Mount(path="a2a")
PINNED: tuple[Mount, ...] = (
    Mount(path="a2a/seed-0", dialect="s0"),
    Mount(path="a2a/0.0", dialect="v00", admits=frozenset({"0.0"})),
    Mount(path="a2a/0.1", dialect="v01", admits=frozenset({"0.1"})),
    Mount(path="a2a/0.2", dialect="v02", admits=frozenset({"0.2"})),
    Mount(path="a2a/0.3", dialect="v03", admits=frozenset({"0.3", "0.2"})),
    Mount(path="a2a/1.0-draft", dialect="dr", admits=frozenset({"1.0", "0.3"})),
    Mount(path="a2a/1.0", dialect="v10", admits=frozenset({"1.0"})),
)
_NAMED = {mount.path.removeprefix("a2a/"): mount for mount in PINNED}
#: By dialect: the mount pinned to it.
MOUNTS: Mapping[str, Mount] = {mount.dialect: mount for mount in PINNED}


def split(segments: Sequence[str]) -> tuple[Mount, list[str]]:
    """The mount a path below an agent begins with, and the segments after it.

    Below `a2a` everything that is not the name of a pinned mount is the detecting mount's.
    """
    if not segments or segments[0] != "a2a":
        return DETECTING, list(segments)
    pinned = _NAMED.get(segments[1]) if len(segments) > 1 else None
    return (pinned, list(segments[2:])) if pinned else (DETECTING, list(segments[1:]))
