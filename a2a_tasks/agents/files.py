"""The files of a turn: what is in a part, what the host keeps for it, and what is somewhere on the web.

The host's own (execution/files) reads the storage and goes out by the address guard.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from a2a_tasks.agents.faults import FileUnavailable
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.values import Part

__all__ = ["Files"]


class Files:
    """Reads parts. This one calls nobody: it is for tests of agents.

    `Files({"https://example.com/a.csv": b"a,b"})` has what these URLs would be answered with.
    """

    def __init__(self, answers: Mapping[str, bytes] | None = None) -> None:
        self._answers = answers or {}

    async def read(self, part: Part) -> bytes:
        """The bytes of a file the host has. Raises ValueError for any other part, FileUnavailable."""
        if isinstance(part.raw, str):
            return base64.b64decode(part.raw)
        file = file_of(part)
        if file is None:
            raise ValueError("the host has no bytes of this part; `turn.fetch` gets those of a URL")
        return await self.stored(file)

    async def fetch(self, part: Part, most: int | None, seconds: float | None) -> bytes:
        """The same, also of a URL, which is asked. Raises ValueError, FileUnavailable."""
        if isinstance(part.url, str) and file_of(part) is None:
            return await self.fetched(part, most, seconds)
        return await self.read(part)

    async def stored(self, file: str) -> bytes:
        """The bytes of a file in the host's storage, by its id. Raises FileUnavailable."""
        raise FileUnavailable("The file is no longer there.")

    async def fetched(self, part: Part, most: int | None, seconds: float | None) -> bytes:
        """What the URL of a part is answered with. Raises FileUnavailable."""
        found = self._answers.get(str(part.url))
        if found is None:
            raise FileUnavailable("The file cannot be fetched.")
        return found
