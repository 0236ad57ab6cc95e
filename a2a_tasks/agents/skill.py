"""The declarations of an agent for its card: skills, provider, extensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Extension", "Provider", "Skill"]


@dataclass(frozen=True)
class Skill:
    """A skill of an agent (A2A 1.0 §4.4.5). `tags` must not be empty: readers of cards require them."""

    id: str
    name: str
    description: str
    tags: Sequence[str] = ()
    examples: Sequence[str] = ()
    #: Media types; empty = the agent's.
    input_modes: Sequence[str] = ()
    output_modes: Sequence[str] = ()
    #: Required scopes in addition to the agent's own. Cards declare them; the agent must check them with `turn.require`.
    scopes: Sequence[str] = ()


@dataclass(frozen=True)
class Provider:
    """The provider of an agent (A2A 1.0 §4.4.2)."""

    organization: str
    url: str


@dataclass(frozen=True)
class Extension:
    """An extension of the protocol that the agent supports (A2A 1.0 §4.4.4)."""

    uri: str
    description: str = ""
    required: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
