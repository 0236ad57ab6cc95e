"""Files out of the row: their bytes in Django's storage `a2a_files`, and a row for each (decision 8).

The row comes first and goes last. Whatever is interrupted in between leaves a row without a task, and `sweep` removes
first the bytes and then the row of such. Bytes are moved in threads of their own, never in those of the database.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import functools
import hashlib
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Collection
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
    "remove_of",
    "sweep",
]

logger = logging.getLogger(__name__)
_outage = ThrottledLogger(logger, "the storage of files is away")
#: The storage's name in Django's STORAGES.
STORAGE = "a2a_files"
#: A file nobody has taken after so long never will be.
PENDING = datetime.timedelta(hours=1)
#: Bytes read at once.
CHUNK = 256 * 1024
#: Files one step of a sweep removes: each may be a call to a server far away.
AT_ONCE = 20


class FileGone(Exception):
    """The storage has no such file any more."""


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


# --- putting away -------------------------------------------------------------------------------


def is_large(part: Part) -> bool:
    """Has it more bytes than stay inside a message or an artifact?"""
    raw = part.raw
    return raw is not UNSET and len(raw) * 3 // 4 - raw[-2:].count("=") > conf.FILE_INLINE_BYTES


def _decode(raw: str) -> tuple[bytes, str]:
    content = base64.b64decode(raw)
    return content, hashlib.sha256(content).hexdigest()


async def keep(part: Part, scope: OwnerScope, task: int | None = None) -> tuple[Part, uuid.UUID]:
    """Put the bytes of a part into the storage; returns a part that refers to them, and the file's id.

    Without a `task`, one has to take the file within the hour (`attach_files`). Raises Overloaded, having kept nothing, and
    FileGone if the task's files were removed meanwhile.
    """
    assert isinstance(part.raw, str)  # noqa: S101 - the caller looked
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
        await run_in_thread(lost.update, task=None, pending_until=None)  # the sweep's, by and by
        raise _away(fault) from fault
    if task and not await run_in_thread(StoredFile.objects.filter(pk=key, task=task).exists):
        await asyncio.to_thread(_delete, row.name)
        raise FileGone(row.name)
    return replace(part, raw=UNSET, url=reference(key.hex)), key


def _storable(text: str) -> str:
    """Without what no database holds."""
    return text.replace("\x00", "")


def _save(name: str, content: bytes) -> None:
    storage = _storage()
    saved = storage.save(name, ContentFile(content))
    if saved != name:
        storage.delete(saved)
        raise OSError(f"the storage calls {name} {saved}")
    try:
        path = storage.path(name)
    except NotImplementedError:  # it is no file of this machine
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # what is accepted survives a loss of power
    finally:
        os.close(descriptor)


def attach_files(files: Collection[uuid.UUID]) -> Companion:
    """Return a function that gives these files to the task of their message, in the transaction that accepts it."""

    def attach(task: int) -> None:
        waiting = StoredFile.objects.filter(pk__in=files, task=None, pending_until__gt=Now())
        owner = Task.objects.filter(pk=task).values(
            "owner"
        )  # of an owner scope that new tasks no longer get
        if waiting.update(task_id=task, owner=owner, pending_until=None) != len(files):
            raise Overloaded.away(undone=True)  # swept: whoever sends again sends the bytes again

    return attach


async def discard(files: Collection[uuid.UUID]) -> None:
    """Their message was not accepted: remove those of these files that no task has."""
    doomed = await run_in_thread(_find_doomed, files)
    gone = [key for key, name in doomed if await asyncio.to_thread(_delete, name)]
    await run_in_thread(_forget, gone)


@transaction.atomic
def _find_doomed(files: Collection[uuid.UUID]) -> list[tuple[uuid.UUID, str]]:
    """Keys and names of those that no task has, nor can have any more."""
    mine = StoredFile.objects.filter(pk__in=files, task=None)
    mine.update(pending_until=None)
    return list(mine.values_list("id", "name"))


def _forget(files: Collection[uuid.UUID]) -> None:
    StoredFile.objects.filter(pk__in=files, task=None).delete()


# --- reading ------------------------------------------------------------------------------------


def find(file_id: str, agent: str, scope: OwnerScope | None = None) -> FileRow | None:
    """A file of this agent's tasks, if a scope is given one of its own; None for any other."""
    rows = StoredFile.objects.filter(pk=uuid.UUID(file_id), agent=agent).exclude(task=None)
    if scope is not None:
        rows = rows.filter(tenant=scope.tenant, owner=scope.owner)
    columns = ("id", "task_id", *FileRow._fields[2:])
    found = rows.values_list(*columns).first()
    return FileRow(*found) if found else None


def _open(name: str) -> File[bytes]:
    return _storage().open(name)


async def open_file(row: FileRow) -> File[bytes]:
    """The file, to be closed. Raises FileGone; Overloaded if the storage is away."""
    try:
        return await asyncio.to_thread(_open, row.name)
    except FileNotFoundError as fault:
        raise FileGone(row.name) from fault
    except Exception as fault:
        raise _away(fault) from fault


async def chunks(file: File[bytes], first: int, length: int) -> AsyncGenerator[bytes, None]:
    """So many bytes from the first one on, a piece at a time. Raises what the storage raises, FileGone if it ends early."""
    if first:
        await asyncio.to_thread(file.seek, first)
    while length:
        piece = await asyncio.to_thread(file.read, min(CHUNK, length))
        if not piece:
            raise FileGone(file.name)
        length -= len(piece)
        yield piece


async def read(row: FileRow) -> bytes:
    """All of it. Raises FileGone; Overloaded if the storage is away."""
    file = await open_file(row)
    try:
        return await asyncio.to_thread(file.read)
    except Exception as fault:
        raise _away(fault) from fault
    finally:
        await asyncio.to_thread(file.close)


# --- removing -----------------------------------------------------------------------------------


def remove_of(tasks: Collection[int]) -> int:
    """Take their files from these tasks, by primary keys, in the caller's transaction; the bytes go after its commit.

    Returns how many. What cannot be removed then, the next sweep removes.
    """
    files = StoredFile.objects.filter(task__in=tasks)
    gone = files.update(task=None)
    transaction.on_commit(functools.partial(_sweep_all, gone))
    return gone


def _sweep_all(limit: int) -> None:
    while limit > 0 and (gone := sweep()):
        limit -= gone


def sweep(limit: int = AT_ONCE) -> int:
    """Remove files without a task, bytes first, at most so many; returns how many. 0 = there are no more now."""
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
    """Remove bytes that may be gone already; False if the storage is away."""
    try:
        _storage().delete(name)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the row is kept, and it is tried again
        _outage.warning(fault)
        return False
    return True
