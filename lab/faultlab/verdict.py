"""What tests say of an episode."""

from __future__ import annotations

from lab.faultlab.lab import Episode

__all__ = ["nothing_was_lost"]


def nothing_was_lost(episode: Episode) -> None:
    """Fail with everything that was violated, and the seed that shows it again."""
    told = "\n".join(map(str, episode.violations))
    assert not episode.violations, f"{episode.name}, seed {episode.seed}:\n{told}"
