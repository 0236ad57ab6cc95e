"""What an agent says of itself beside its code: skills, provider, extensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Extension", "Provider", "Skill"]


@dataclass(frozen=True)
class Skill:
    """One thing an agent can do (A2A 1.0 §4.4.5). `tags` must not be empty: readers of cards insist."""

    id: str
    name: str
    description: str
    tags: Sequence[str] = ()
    examples: Sequence[str] = ()
    #: Media types; empty = the agent's.
    input_modes: Sequence[str] = ()
    output_modes: Sequence[str] = ()
    #: Scopes a caller needs for it, beside the agent's own. Cards say so; the agent sees to it: `turn.require`.
    scopes: Sequence[str] = ()


@dataclass(frozen=True)
class Provider:
    """Who offers the agent (A2A 1.0 §4.4.2)."""

    organization: str
    url: str


@dataclass(frozen=True)
class Extension:
    """An extension of the protocol the agent speaks (A2A 1.0 §4.4.4)."""

    uri: str
    description: str = ""
    required: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
