"""The versions of agents that other environments have announced, as this process last read them (`access/switch_cache.py`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from a2a_tasks.agents.declaration import AnnouncedAgent

__all__ = ["AnnouncedVersion", "find", "has", "list_slugs", "list_versions", "percentile", "put"]


@dataclass(frozen=True, slots=True)
class AnnouncedVersion:
    """One version of an agent, and whether a worker that has it is alive."""

    agent: AnnouncedAgent
    is_live: bool = True


_known: Mapping[str, Sequence[AnnouncedVersion]] = {}


def put(found: Mapping[str, Sequence[AnnouncedVersion]]) -> None:
    """Replace all versions by these: by slug, in the order of their first announcements."""
    global _known  # noqa: PLW0603 - one per process
    _known = found


def list_slugs() -> set[str]:
    """Return the slugs of all announced agents that are served."""
    return {slug for slug, known in _known.items() if known}


def has(slug: str) -> bool:
    """Return whether any version of the agent was announced, even if none is served."""
    return slug in _known


def list_versions(slug: str) -> Sequence[AnnouncedVersion]:
    """Return the announced versions of an agent, the oldest first."""
    return _known.get(slug, ())


def find(slug: str, version: str) -> AnnouncedVersion | None:
    """Return this version of the agent, if it was announced."""
    return next((one for one in list_versions(slug) if one.agent.version == version), None)


def percentile(conversation: str) -> float:
    """Return the hash of a conversation's id as a number from 0 to 100: a canary gets those below its percentage."""
    return int.from_bytes(hashlib.sha256(conversation.encode()).digest()[:8]) / 2**64 * 100
