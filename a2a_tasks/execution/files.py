"""The files of a turn that the host carries: read from the storage, fetched by the guard, and put away when large."""

from __future__ import annotations

import base64
import functools

from a2a_tasks.agents import Files, FileUnavailable, registry
from a2a_tasks.execution.fetching import fetch
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.media_types import UNKNOWN, media_type_of
from a2a_tasks.protocol.values import UNSET, Part, replace
from a2a_tasks.store import files
from a2a_tasks.store.files import FileGone, Row, is_large
from a2a_tasks.store.hop import hop, until_answered
from a2a_tasks.store.records import Assignment

__all__ = ["StoredFiles"]

GONE = "The file is no longer there."


class StoredFiles(Files):
    """Those of one run: what lies in its scope, and what it says itself."""

    def __init__(self, run: Assignment) -> None:
        super().__init__()
        self._run = run

    async def _found(self, file: str) -> Row:
        scope = self._run.scope
        row = await until_answered(
            functools.partial(hop, files.find, file, scope.agent, scope), repeatable=True
        )
        if row is None:
            raise FileUnavailable(GONE)
        return row

    async def stored(self, file: str) -> bytes:
        """The bytes of a file of this run's scope. Raises FileUnavailable, Overloaded."""
        row = await self._found(file)
        try:
            return await until_answered(functools.partial(files.read, row), repeatable=True)
        except FileGone:
            raise FileUnavailable(GONE) from None

    async def fetched(self, part: Part, most: int | None, seconds: float | None) -> bytes:
        """What a URL is answered with, of a media type the agent takes. Raises FileUnavailable."""
        media_type, content = await fetch(str(part.url), most, seconds)
        if media_type == UNKNOWN:  # the server does not know; the message did
            media_type = media_type_of(part)
        agent = registry.hosted(self._run.scope.agent)
        if agent is not None and not agent.accepts(media_type):
            raise FileUnavailable("The file is of a media type the agent does not take.")
        return content

    @staticmethod
    def concern(parts: tuple[Part, ...]) -> bool:
        """Is there a file among what the agent says that is to be put away, or kept already?"""
        return any(is_large(part) or file_of(part) is not None for part in parts)

    async def put_away(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts with large files in the storage, as this task's. Raises FileUnavailable, Overloaded."""
        return tuple([await self._slim(part) for part in parts])

    async def _slim(self, part: Part) -> Part:
        file = file_of(part)
        if file is not None:
            return await self._own(part, file)
        return await self._keep(part) if is_large(part) else part

    async def _keep(self, part: Part) -> Part:
        kept = functools.partial(files.keep, part, self._run.scope, self._run.task)
        slimmed, _ = await until_answered(kept)
        return slimmed

    async def _own(self, part: Part, file: str) -> Part:
        """A file the agent gives on: this task's own as it is, another one's as a copy, which stays when that goes."""
        row = await self._found(file)
        if row.task == self._run.task:
            return part
        return await self._keep(_with(part, await self.stored(file)))


def _with(part: Part, content: bytes) -> Part:
    return replace(part, url=UNSET, raw=base64.b64encode(content).decode())
