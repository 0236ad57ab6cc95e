"""Tools that write to a file. CHAT_LEDGER names it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

LEDGER = Path(os.environ["CHAT_LEDGER"])


def note(text: str) -> str:
    """Write a line."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{text}\n")
    return f"noted {text}"


def is_new(text: str) -> bool:
    """Write a line, and tell whether it is the first of its kind."""
    known = LEDGER.read_text().split()
    note(text)
    return text not in known


async def hold(text: str) -> str:
    """Write a line; the first time, wait for the end of the process."""
    if await asyncio.to_thread(is_new, text):
        await asyncio.Event().wait()
    return f"held {text}"


def pay(amount: int) -> str:
    """Pay."""
    note(f"paid-{amount}")
    return f"paid {amount}"
