"""What an agent of the journeys wrote about itself."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.waiting import eventually

__all__ = ["Trace"]


class Trace:
    """The file of a witness."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def _words(self) -> dict[str, float]:
        lines = self.path.read_text().split("\n") if self.path.exists() else []
        return {word: float(at) for word, _, at in (line.partition(" ") for line in lines) if at}

    async def of(self, word: str) -> float:
        """Wait for the word; the moment it was written."""

        async def look() -> float | None:
            return (await self._words()).get(word)

        return await eventually(look, f"{word} in {self.path.name}")
