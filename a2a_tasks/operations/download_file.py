"""Downloading a file of a task by the URL an answer had for it. What may not be had does not exist."""

from __future__ import annotations

from typing import TypeAlias

from django.core.files.base import File

from a2a_tasks.access import metering
from a2a_tasks.agents import Agent
from a2a_tasks.caller import ANONYMOUS, Caller
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.store import files
from a2a_tasks.store.file_links import authenticated, is_signed
from a2a_tasks.store.files import FileGone, Row, chunks
from a2a_tasks.store.hop import hop

__all__ = ["Download", "Row", "authenticated", "chunks", "download_file"]

#: What is known of a file, and the file.
Download: TypeAlias = "tuple[Row, File[bytes]]"

_NOWHERE = "There is nothing at this path"


async def download_file(
    agent: Agent, file_id: str, *, expires: str, signature: str, caller: Caller, address: str
) -> Download:
    """The file, to be closed, and what is known of it. Raises Overloaded.

    A URL that is signed for whoever has it counts for the address it is asked for from; raises RateLimited.
    Raises MethodNotFound for a URL that is not ours, not this caller's or not good any more, and if there is no such file.
    """
    if not is_signed(agent.slug, file_id, expires, signature, caller.principal):
        raise MethodNotFound(_NOWHERE)
    if not authenticated():  # else the door has counted the caller
        await metering.take(metering.rates_for(ANONYMOUS, agent, address))
    row = await hop(files.find, file_id, agent.slug)
    if row is None:
        raise MethodNotFound(_NOWHERE)
    try:
        return row, await files.opened(row)
    except FileGone:
        raise MethodNotFound(_NOWHERE) from None
