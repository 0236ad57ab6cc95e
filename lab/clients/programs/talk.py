"""What programs ask a client as it is by default: `main(Peer)` in each, run as `python NAME.py CARD_URL VERSION ENDPOINT`.

The variable CHECKS says which of the checks below are run, over each of BINDINGS. Each is told as one line of JSON, as `conversation.mjs` does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import traceback
import uuid
import warnings
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

#: For the checks alone: what frameworks print goes elsewhere.
_told, sys.stdout = sys.stdout, sys.stderr
#: Seconds for a check: a machine may be busy.
PATIENCE = 60.0
CHUNKS = "".join(f"#{i};".ljust(32, ".") for i in range(20))


@dataclass
class Heard:
    """What a client shows of an answer."""

    text: str
    #: How many pieces of it came one after the other.
    pieces: int = 1
    #: Bytes of files, and URLs.
    files: list[bytes | str] = field(default_factory=list)
    #: What the client needs to say more in the same task.
    more: Any = None


class Peer(Protocol):
    """A client at the demo agent."""

    def __init__(self, address: str, binding: str) -> None:
        """Talk to the agent at that address, with a slash at its end, over one binding."""

    async def ask(self, text: str, after: Heard | None = None, *, stream: bool = False) -> Heard:
        """Say it, in the task of an earlier answer if there is one, and hear the answer."""

    async def interface(self) -> tuple[str, str]:
        """The version of the protocol and the URL in the card."""

    async def cancel(self, text: str) -> str:
        """Begin a task with that text and cancel it. Return the state it is in, in small letters."""


def word() -> str:
    """A word nobody has said before."""
    return uuid.uuid4().hex[:12]


def same(found: object, wanted: object) -> None:
    """Raises AssertionError."""
    assert found == wanted, f"{found!r} instead of {wanted!r}"


async def card_names_the_dialect(peer: Peer) -> None:
    same(await peer.interface(), tuple(sys.argv[2:]))


async def blocking_send(peer: Peer) -> None:
    text = word()
    same((await peer.ask(f"echo {text}")).text, text)


async def stream_of_chunks(peer: Peer) -> None:
    heard = await peer.ask("chunks 20", stream=True)
    same(heard.text, CHUNKS)
    assert heard.pieces > 1, "it came in one piece"


async def silent_send(peer: Peer) -> None:
    text = (await peer.ask("sleep 8")).text
    assert text.endswith("Slept 8 s"), text


async def silent_stream(peer: Peer) -> None:
    text = (await peer.ask("sleep 8", stream=True)).text
    assert text.endswith("Slept 8 s"), text


async def input_required(peer: Peer) -> None:
    same((await peer.ask("ask Who?")).text, "Who?")


async def input_required_and_reply(peer: Peer) -> None:
    asked, text = await peer.ask("ask Who?"), word()
    same(asked.text, "Who?")
    same((await peer.ask(text, asked)).text, text)


async def relayed_question(peer: Peer) -> None:
    asked, text = await peer.ask("call ask Who?"), word()
    same(asked.text, "Who?")
    same((await peer.ask(text, asked)).text, text)


async def cancel_running(peer: Peer) -> None:
    same(await peer.cancel("slow 60"), "canceled")


async def files_and_data(peer: Peer) -> None:
    heard = await peer.ask("file some bytes")
    same(heard.files, [b"some bytes", "https://example.com/demo.txt"])


CHECKS: list[Callable[[Any], Coroutine[Any, Any, None]]] = [
    card_names_the_dialect,
    blocking_send,
    stream_of_chunks,
    silent_send,
    silent_stream,
    input_required,
    input_required_and_reply,
    relayed_question,
    cancel_running,
    files_and_data,
]


async def tell(peer: type[Peer], binding: str, check: Any) -> None:
    """Print how a check went."""
    address, why = sys.argv[1].partition(".well-known/")[0], ""
    try:
        await asyncio.wait_for(check(peer(address, binding)), PATIENCE)
    except Exception:  # noqa: BLE001 - whatever happens is told
        why = traceback.format_exc()
    told = {"binding": binding, "check": check.__name__, "why": why}
    _told.write(json.dumps(told) + "\n")
    _told.flush()


async def converse(peer: type[Peer]) -> None:
    """Every check that is asked for, over each binding: one after the other, those of silence together."""
    asked, bindings = (os.environ[name].split(",") for name in ("CHECKS", "BINDINGS"))
    found = [(b, one) for b in bindings for one in CHECKS if one.__name__ in asked]
    for binding, one in found:
        if not one.__name__.startswith("silent_"):
            await tell(peer, binding, one)
    silent = [case for case in found if case[1].__name__.startswith("silent_")]
    await asyncio.gather(*(tell(peer, *case) for case in silent))


def main(peer: type[Peer]) -> None:
    """Talk to the agent of the command line."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    asyncio.run(converse(peer))
