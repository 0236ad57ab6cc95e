"""The conversation, files and secrets of a turn on the host, which are read from the store when the agent asks for them.

Files are also downloaded through the guard, and stored when large. Secrets are requested with a link, and erased when
the turn ends.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from a2a_tasks import process
from a2a_tasks.agents import Conversation, Files, FileUnavailable, Message, Secrets, registry, text
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.conf import base_url
from a2a_tasks.conversation_changes import StoredItems, StoredValue
from a2a_tasks.execution.downloads import fetch
from a2a_tasks.execution.turns import find_reach
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.media_types import UNKNOWN, media_type_of
from a2a_tasks.protocol.operators import HANDED_OVER, HANDOVER
from a2a_tasks.protocol.values import UNSET, Part, replace
from a2a_tasks.store import conversations, files, handed_secrets
from a2a_tasks.store.db import retry_until_answered, run_in_thread
from a2a_tasks.store.delegations import list_called_agents
from a2a_tasks.store.files import FileGone, FileRow, is_large
from a2a_tasks.store.handed_secrets import Link
from a2a_tasks.store.records import ClaimedRun

__all__ = ["PATH", "StoredConversation", "StoredFiles", "StoredSecrets", "url_of"]

GONE = "The file is no longer there."
#: Path of the page on which secrets are handed over.
PATH = "/handover/"

T = TypeVar("T")
_message = msgspec.json.Decoder(Message).decode


class StoredConversation(Conversation):
    """The conversation of a run's task. Nothing is read before the agent uses it."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__()
        self._run = run

    async def read_value(self, key: str) -> StoredValue:
        """Read a value from the store. Raises TransactionRefused."""
        return await self._read_for_changes(lambda: conversations.read_value(self._run.task, key))

    async def read_version(self, key: str) -> int:
        """Read the version of a value from the store."""
        return await self._read_for_changes(lambda: conversations.read_version(self._run.task, key))

    async def read_items(self, key: str, skip: int, limit: int | None) -> StoredItems:
        """Read a part of a list from the store."""
        return await self._read_for_changes(
            lambda: conversations.read_items(self._run.task, key, skip, limit)
        )

    async def count_keys(self) -> int:
        """Count the keys in the store."""
        return await self._read_for_changes(lambda: conversations.count_keys(self._run.task))

    async def read_history(self, limit: int) -> list[Message]:
        """Read the last messages of all tasks."""
        turn = (self._run.task, self._run.input_number)
        texts = await self._query(lambda: conversations.read_history(*turn, limit))
        return [_message(text) for text in texts]

    async def _read_for_changes(self, work: Callable[[], T]) -> T:
        self.is_used = True  # also by an agent in another process, which asks here
        return await self._query(work)

    async def _query(self, work: Callable[[], T]) -> T:
        return await retry_until_answered(functools.partial(run_in_thread, work), repeatable=True)


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
        if row is None and (row := await self._find_called(file)) is None:
            raise FileUnavailable(GONE)
        return row

    async def _find_called(self, file: str) -> FileRow | None:
        """Find a file of a task that this one has called."""
        listing = functools.partial(run_in_thread, list_called_agents, self._run.task)
        for agent in await retry_until_answered(listing, repeatable=True):
            reach = find_reach(self._run, agent)
            finding = functools.partial(run_in_thread, files.find, file, agent, reach)
            if (row := await retry_until_answered(finding, repeatable=True)) is not None:
                return row
        return None

    async def inline(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the parts with the bytes of stored files, for a task of another agent. Raises FileUnavailable, Overloaded."""
        found = [(part, file_of(part)) for part in parts]
        return tuple(
            [
                _with_bytes(part, await self.read_stored(file)) if file else part
                for part, file in found
            ]
        )

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
        for part in parts:
            if part.text is UNSET and (is_large(part) or file_of(part) is not None):
                return True
        return False

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
        slimmed, _ = await retry_until_answered(kept, slows_down=True)
        return slimmed

    async def _own(self, part: Part, file: str) -> Part:
        """Return a part with a stored file: unchanged for this task's own; a copy for another task's, which may go."""
        row = await self._find(file)
        if row.task == self._run.task:
            return part
        return await self._keep(_with_bytes(part, await self.read_stored(file)))


def _with_bytes(part: Part, content: bytes) -> Part:
    return replace(part, url=UNSET, raw=base64.b64encode(content).decode())


def url_of(token: str) -> str:
    """Return the URL of the page, below A2A_PUBLIC_URL or else the site of this process; relative if it serves none."""
    return f"{base_url(process.site)}{PATH}{token}"


class StoredSecrets(Secrets):
    """The secrets of one run."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__()
        self._run = run
        #: True if secrets came with the message of the turn. No client can set this key of the metadata.
        self._came = HANDED_OVER in run.input

    async def read_handed(self) -> Mapping[str, str]:
        """Return all secrets that were handed over for this run's turn, without a cache. Raises Overloaded."""
        if not self._came:
            return {}
        return await retry_until_answered(
            functools.partial(run_in_thread, handed_secrets.read, self._run), repeatable=True
        )

    async def add_link(self, status: StatusUpdate) -> StatusUpdate:
        """Return the agent's question with the link.

        Raises LeaseLost, Overloaded, and TypeError for names that are not texts.
        """
        reason = "\n".join(part.text for part in status.parts if isinstance(part.text, str))
        ask = functools.partial(
            run_in_thread, handed_secrets.ask, self._run, status.hand_over, reason
        )
        link = await retry_until_answered(ask)
        return status if link is None else _with_link(status, link)

    async def wipe(self) -> None:
        """Erase the secrets of the turn after its end. Raises Overloaded."""
        if self._came:
            await run_in_thread(handed_secrets.wipe, self._run.task, self._run.input_number)


def _with_link(status: StatusUpdate, link: Link) -> StatusUpdate:
    url = url_of(link.token)
    until = f"{link.expires_at:%Y-%m-%d %H:%M} UTC"
    sentence = f"Hand over {', '.join(status.hand_over)} at {url} (once, until {until}). It does not become part of this conversation."
    about = {"url": url, "names": list(status.hand_over), "expiresAt": rfc3339(link.expires_at)}
    metadata = {**(status.metadata or {}), HANDOVER: about}
    return dataclasses.replace(status, parts=(*status.parts, text(sentence)), metadata=metadata)
