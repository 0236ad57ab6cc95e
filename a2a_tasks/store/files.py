"""Offloaded files: their bytes in Django's storage `a2a_files`, and a row for each (decision 8).

The row is written before the bytes and deleted after them. An interruption leaves a row without a task; `sweep` removes
first its bytes and then the row. Bytes are transferred in separate threads, never in those of the database.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import datetime
import hashlib
import logging
import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from pathlib import Path
from typing import NamedTuple

from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import StoredFile, Task
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.files import reference
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import UNSET, Part, replace
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.hooks import Companion

__all__ = [
    "STORAGE",
    "FileGone",
    "FileRow",
    "attach_files",
    "chunks",
    "discard",
    "find",
    "is_large",
    "keep",
    "open_file",
    "read",
    "store_large_files",
    "sweep",
]

logger = logging.getLogger(__name__)
_outage = ThrottledLogger(logger, "the storage of files is away")
#: The storage's name in Django's STORAGES.
STORAGE = "a2a_files"
#: Time after which a file without a task is removed.
PENDING = datetime.timedelta(hours=1)
#: Bytes of one read.
CHUNK = 256 * 1024
#: Maximum number of files that one step of a sweep removes: each may be a call to a distant server.
AT_ONCE = 20


class FileGone(Exception):
    """The storage does not have the file any more."""


class FileRow(NamedTuple):
    """The metadata of a file."""

    id: uuid.UUID
    task: int | None
    size: int
    sha256: str
    media_type: str
    filename: str
    name: str


def _storage() -> Storage:
    return storages[STORAGE]


def _away(fault: Exception) -> Overloaded:
    _outage.warning(fault)
    return Overloaded.away(undone=True)


# --- storing ------------------------------------------------------------------------------------


def is_large(part: Part) -> bool:
    """Return whether the part has more bytes than may stay inside a message or an artifact."""
    raw = part.raw
    return raw is not UNSET and len(raw) * 3 // 4 - raw[-2:].count("=") > conf.FILE_INLINE_BYTES


def _decode(raw: str) -> tuple[bytes, str]:
    content = base64.b64decode(raw)
    return content, hashlib.sha256(content).hexdigest()


async def keep(part: Part, scope: OwnerScope, task: int | None = None) -> tuple[Part, uuid.UUID]:
    """Store the bytes of a part; return a part that refers to them, and the file's id.

    Without a `task`, the file has to be attached to one within the hour (`attach_files`). Raises Overloaded if nothing
    was stored, and FileGone if the task's files were removed meanwhile.
    """
    assert isinstance(part.raw, str)  # noqa: S101 - the caller has checked it
    content, digest = await asyncio.to_thread(_decode, part.raw)
    key = uuid.uuid4()
    row = StoredFile(
        id=key,
        task_id=task,
        tenant=scope.tenant,
        owner=scope.owner,
        agent=scope.agent,
        size=len(content),
        sha256=digest,
        media_type=_storable(media_type_of(part)),
        filename=_storable(part.filename or ""),
        name=f"{key.hex[:2]}/{key.hex}",
        pending_until=None if task else Now() + PENDING,
    )
    await run_in_thread(row.save, force_insert=True)
    try:
        await asyncio.to_thread(_save, row.name, content)
    except Exception as fault:
        lost = StoredFile.objects.filter(pk=key)
        # The sweep removes it later.
        await run_in_thread(lost.update, task=None, pending_until=None)
        raise _away(fault) from fault
    if task and not await run_in_thread(StoredFile.objects.filter(pk=key, task=task).exists):
        await asyncio.to_thread(_delete, row.name)
        raise FileGone(row.name)
    return replace(part, raw=UNSET, url=reference(key.hex)), key


def _storable(text: str) -> str:
    """Return the text without NUL, which PostgreSQL cannot store."""
    return text.replace("\x00", "")


def _save(name: str, content: bytes) -> None:
    storage = _storage()
    try:
        saved = storage.save(name, ContentFile(content))
    except OSError:
        with contextlib.suppress(NotImplementedError, OSError):
            Path(storage.path(name)).unlink()  # a piece of it would fill the disk until the sweep
        raise
    if saved != name:
        storage.delete(saved)
        raise OSError(f"the storage has stored {name} as {saved}")
    try:
        path = storage.path(name)
    except NotImplementedError:  # a storage without local files
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # accepted files survive a loss of power
    finally:
        os.close(descriptor)


def attach_files(files: Collection[uuid.UUID]) -> Companion:
    """Return a function that attaches these files to the task of their message, in the accepting transaction."""

    def attach(task: int) -> None:
        waiting = StoredFile.objects.filter(pk__in=files, task=None, pending_until__gt=Now())
        # The task's own owner: an existing task may be in an owner scope that new tasks do not get any more.
        owner = Task.objects.filter(pk=task).values("owner")
        if waiting.update(task_id=task, owner=owner, pending_until=None) != len(files):
            raise Overloaded.away(undone=True)  # swept already: a repeated send includes the bytes

    return attach


async def discard(files: Collection[uuid.UUID]) -> None:
    """Remove those of these files that have no task, because their message was not accepted."""
    doomed = await run_in_thread(_find_doomed, files)
    gone = [key for key, name in doomed if await asyncio.to_thread(_delete, name)]
    await run_in_thread(_forget, gone)


@contextlib.asynccontextmanager
async def store_large_files(
    request: SendMessageRequest, scope: OwnerScope
) -> AsyncIterator[tuple[SendMessageRequest, tuple[Companion, ...]]]:
    """Yield the request with its large files in the storage, and the companion that attaches them to its task.

    If the block raises, the files are removed, unless a task has them already. Raises Overloaded.
    """
    if not any(map(is_large, request.message.parts)):
        yield request, ()
        return
    kept: list[uuid.UUID] = []

    async def strip(part: Part) -> Part:
        if not is_large(part):
            return part
        slimmed, file = await keep(part, scope)
        kept.append(file)
        return slimmed

    try:
        parts = [await strip(part) for part in request.message.parts]
        message = replace(request.message, parts=tuple(parts))
        yield dataclasses.replace(request, message=message), (attach_files(kept),)
    except BaseException:
        with contextlib.suppress(Overloaded):  # the sweep removes them
            await discard(kept)
        raise


@transaction.atomic
def _find_doomed(files: Collection[uuid.UUID]) -> list[tuple[uuid.UUID, str]]:
    """Return keys and names of the files without a task, after they can no longer be attached to one."""
    mine = StoredFile.objects.filter(pk__in=files, task=None)
    mine.update(pending_until=None)
    return list(mine.values_list("id", "name"))


def _forget(files: Collection[uuid.UUID]) -> None:
    StoredFile.objects.filter(pk__in=files, task=None).delete()


# --- reading ------------------------------------------------------------------------------------


def find(file_id: str, agent: str, scope: OwnerScope | None = None) -> FileRow | None:
    """Return a file of this agent's tasks, with a scope only of the scope's own tasks; None for all others."""
    rows = StoredFile.objects.filter(pk=uuid.UUID(file_id), agent=agent).exclude(task=None)
    if scope is not None:
        rows = rows.filter(tenant=scope.tenant, owner=scope.owner)
    columns = ("id", "task_id", *FileRow._fields[2:])
    found = rows.values_list(*columns).first()
    return FileRow(*found) if found else None


def _open(name: str) -> File[bytes]:
    return _storage().open(name)


async def open_file(row: FileRow) -> File[bytes]:
    """Open a file; the caller closes it. Raises FileGone; Overloaded if the storage is away."""
    try:
        return await asyncio.to_thread(_open, row.name)
    except FileNotFoundError as fault:
        raise FileGone(row.name) from fault
    except Exception as fault:
        raise _away(fault) from fault


async def chunks(file: File[bytes], first: int, length: int) -> AsyncGenerator[bytes, None]:
    """Yield `length` bytes from byte `first` on, in pieces. Raises the storage's exceptions; FileGone if it ends early."""
    if first:
        await asyncio.to_thread(file.seek, first)
    while length:
        piece = await asyncio.to_thread(file.read, min(CHUNK, length))
        if not piece:
            raise FileGone(file.name)
        length -= len(piece)
        yield piece


async def read(row: FileRow) -> bytes:
    """Return all bytes of a file. Raises FileGone; Overloaded if the storage is away."""
    file = await open_file(row)
    try:
        return await asyncio.to_thread(file.read)
    except Exception as fault:
        raise _away(fault) from fault
    finally:
        await asyncio.to_thread(file.close)


# --- removing -----------------------------------------------------------------------------------


def sweep(limit: int = AT_ONCE) -> int:
    """Remove files without a task, bytes first, at most `limit`; return their number. 0 = there are no more now."""
    lost = StoredFile.objects.filter(Q(pending_until=None) | Q(pending_until__lt=Now()), task=None)
    gone = []
    for key, name in lost.order_by("id").values_list("id", "name")[:limit]:
        if not _delete(name):
            break
        gone.append(key)
    if gone:
        _forget(gone)
    return len(gone)


def _delete(name: str) -> bool:
    """Remove the bytes of a file, which may be gone already; False if the storage is away."""
    try:
        _storage().delete(name)
    except Exception as fault:  # noqa: BLE001 - after any failure the row is kept, and the next sweep tries again
        _outage.warning(fault)
        return False
    return True
