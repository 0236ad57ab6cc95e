"""Tools that tell the ledger when they begin and when they are done. Their results name the entry."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urlencode
from urllib.request import urlopen

URL = os.environ["CHAT_URL"]


def note(text: str) -> str:
    """Work in a thread."""
    number = enter(call=text)
    enter(call=text, number=number)
    return f"{text}x{number}"


async def look(text: str) -> str:
    """Work on the event loop."""
    return await asyncio.to_thread(note, text)


def pay(text: str) -> str:
    """Work that the client is asked about."""
    return note(text)


def enter(**entry: str) -> str:
    """Tell the ledger. It does not answer a process that is to die."""
    with urlopen(f"{URL}/ledger?{urlencode(entry)}", timeout=120) as answer:
        return str(answer.read().decode())
