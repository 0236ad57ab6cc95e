"""The files and secrets of a turn.

Files are inside a part, in the host's storage, or at a URL. Secrets are entered by people on a page that works once,
outside the conversation.

The subclasses of the host are in execution/sources.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from a2a_tasks.agents.faults import FileUnavailable
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.values import Part

__all__ = ["Files", "Secrets", "check_names"]

#: Most secrets in one request, and most characters of a secret's name.
MAX_COUNT, MAX_LENGTH = 10, 100


class Files:
    """A reader of the files in parts. This base class makes no calls: it is for tests of agents.

    `Files({"https://example.com/a.csv": b"a,b"})` contains the answers of these URLs.
    """

    def __init__(self, answers: Mapping[str, bytes] | None = None) -> None:
        self._answers = answers or {}

    async def read(self, part: Part) -> bytes:
        """Return the bytes of a file in the part or on the host. Raises ValueError for other parts, FileUnavailable."""
        if isinstance(part.raw, str):
            return base64.b64decode(part.raw)
        file = file_of(part)
        if file is None:
            raise ValueError("the host has no bytes of this part; `turn.fetch` gets those of a URL")
        return await self.read_stored(file)

    async def fetch(self, part: Part, max_bytes: int | None, seconds: float | None) -> bytes:
        """Return the bytes as `read` does, and also download a URL. Raises ValueError, FileUnavailable."""
        if isinstance(part.url, str) and file_of(part) is None:
            return await self.download(part, max_bytes, seconds)
        return await self.read(part)

    async def read_stored(self, file: str) -> bytes:
        """Return the bytes of a file in the host's storage, by its id. Raises FileUnavailable."""
        raise FileUnavailable("The file is no longer there.")

    async def download(self, part: Part, max_bytes: int | None, seconds: float | None) -> bytes:
        """Download the URL of a part. Raises FileUnavailable."""
        found = self._answers.get(str(part.url))
        if found is None:
            raise FileUnavailable("The file cannot be fetched.")
        return found


class Secrets:
    """Secrets by name. This base class makes no calls: it is for tests of agents.

    Use: `Turn(..., secrets=Secrets({"API token": "s3cret"}))`.
    """

    def __init__(self, handed: Mapping[str, str] | None = None) -> None:
        self._handed = dict(handed or {})

    async def read_handed(self) -> Mapping[str, str]:
        """Return all secrets that were handed over for this turn."""
        return self._handed

    def __repr__(self) -> str:
        return "Secrets(...)"


def check_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the requested secrets.

    Raises ValueError for blank, too long or repeated names, and for too many.
    """
    checked = (names,) if isinstance(names, str) else tuple(names)
    good = all(name.strip() and len(name) <= MAX_LENGTH for name in checked)
    if not good or len(checked) > MAX_COUNT or len(set(checked)) < len(checked):
        raise ValueError(
            f"hand_over: up to {MAX_COUNT} different names of up to {MAX_LENGTH} characters"
        )
    return checked
