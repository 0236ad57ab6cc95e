"""The files of a turn on the host: read from the storage, downloaded through the guard, and stored when large."""

from __future__ import annotations

import base64
import functools

from a2a_tasks.agents import Files, FileUnavailable, registry
from a2a_tasks.execution.downloads import fetch
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.media_types import UNKNOWN, media_type_of
from a2a_tasks.protocol.values import UNSET, Part, replace
from a2a_tasks.store import files
from a2a_tasks.store.db import retry_until_answered, run_in_thread
from a2a_tasks.store.files import FileGone, FileRow, is_large
from a2a_tasks.store.records import ClaimedRun

__all__ = ["StoredFiles"]

GONE = "The file is no longer there."


class StoredFiles(Files):
    """The files of one run: those in its scope, and those that its agent yields."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__()
        self._run = run

    async def _find(self, file: str) -> FileRow:
        scope = self._run.scope
        row = await retry_until_answered(
            functools.partial(run_in_thread, files.find, file, scope.agent, scope), repeatable=True
        )
        if row is None:
            raise FileUnavailable(GONE)
        return row

    async def read_stored(self, file: str) -> bytes:
        """Return the bytes of a file in this run's scope. Raises FileUnavailable, Overloaded."""
        row = await self._find(file)
        try:
            return await retry_until_answered(functools.partial(files.read, row), repeatable=True)
        except FileGone:
            raise FileUnavailable(GONE) from None

    async def download(self, part: Part, max_bytes: int | None, seconds: float | None) -> bytes:
        """Download a URL whose media type the agent accepts. Raises FileUnavailable."""
        media_type, content = await fetch(str(part.url), max_bytes, seconds)
        if media_type == UNKNOWN:  # the server does not know it; the message may
            media_type = media_type_of(part)
        agent = registry.find_own(self._run.scope.agent)
        if agent is not None and not agent.accepts(media_type):
            raise FileUnavailable("The file is of a media type the agent does not take.")
        return content

    @staticmethod
    def concern(parts: tuple[Part, ...]) -> bool:
        """Return whether one of the parts has a file that must be stored, or is stored already."""
        return any(is_large(part) or file_of(part) is not None for part in parts)

    async def offload(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Return the parts with large files moved to the storage of this task. Raises FileUnavailable, Overloaded."""
        return tuple([await self._slim(part) for part in parts])

    async def _slim(self, part: Part) -> Part:
        file = file_of(part)
        if file is not None:
            return await self._own(part, file)
        return await self._keep(part) if is_large(part) else part

    async def _keep(self, part: Part) -> Part:
        kept = functools.partial(files.keep, part, self._run.scope, self._run.task)
        slimmed, _ = await retry_until_answered(kept)
        return slimmed

    async def _own(self, part: Part, file: str) -> Part:
        """Return a part with a stored file: unchanged for this task's own; a copy for another task's, which may go."""
        row = await self._find(file)
        if row.task == self._run.task:
            return part
        return await self._keep(_with(part, await self.read_stored(file)))


def _with(part: Part, content: bytes) -> Part:
    return replace(part, url=UNSET, raw=base64.b64encode(content).decode())
