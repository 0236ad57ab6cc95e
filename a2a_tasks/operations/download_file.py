"""Download of a task's file by the URL in an answer. Files that the caller may not read do not exist for it."""

from __future__ import annotations

from typing import TypeAlias

from django.core.files.base import File

from a2a_tasks.access import rate_limits
from a2a_tasks.agents import Agent
from a2a_tasks.caller import ANONYMOUS, Caller
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.store import files
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.file_links import is_signed, requires_caller
from a2a_tasks.store.files import FileGone, FileRow, chunks

__all__ = ["Download", "FileRow", "requires_caller", "chunks", "download_file"]

#: The row of a file, and the open file.
Download: TypeAlias = "tuple[FileRow, File[bytes]]"

_NOWHERE = "There is nothing at this path"


async def download_file(
    agent: Agent, file_id: str, *, expires: str, signature: str, caller: Caller, address: str
) -> Download:
    """Return the open file, which the caller closes, and its row. Raises Overloaded.

    A URL that is signed for anyone counts against the rate of the client's address; raises RateLimited. Raises
    MethodNotFound for a URL that is not valid here, for this caller or any more, and for a file that does not exist.
    """
    if not is_signed(agent.slug, file_id, expires, signature, caller.principal):
        raise MethodNotFound(_NOWHERE)
    if not requires_caller():  # else the binding has counted the caller
        await rate_limits.take(rate_limits.rates_for(ANONYMOUS, agent, address))
    row = await run_in_thread(files.find, file_id, agent.slug)
    if row is None:
        raise MethodNotFound(_NOWHERE)
    try:
        return row, await files.open_file(row)
    except FileGone:
        raise MethodNotFound(_NOWHERE) from None
