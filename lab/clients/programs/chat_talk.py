"""What programs ask a client of OpenAI's API: `main(say, stream)` in each, run as `python NAME.py URL`.

The variable CHECKS names the checks that are run; KEY is the client's key. Each check is told as one line of JSON, as
`talk.py` does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import traceback
import urllib.request
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

__all__ = ["API", "KEY", "main"]

#: For the checks alone: what frameworks print goes elsewhere.
_told, sys.stdout = sys.stdout, sys.stderr
#: Seconds for a check: a machine may be busy.
PATIENCE = 90.0
HOST, KEY = sys.argv[1], os.environ["KEY"]
API = f"{HOST}/v1"
#: What a user has said and heard before, in turns, and what they say now; returns the answer.
Say = Callable[[Sequence[str], str], Awaitable[str]]


def word() -> str:
    """A word nobody has said before."""
    return uuid.uuid4().hex[:12]


def same(found: object, wanted: object) -> None:
    """Raises AssertionError."""
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def tasks(said: str) -> list[Any]:
    """The tasks in which this word is."""
    url = f"{HOST}/agents/demo/tasks?historyLength=5&pageSize=100"
    asked = urllib.request.Request(url, headers={"X-API-Key": KEY, "A2A-Version": "1.0"})  # noqa: S310 - the host's
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - the same
        return [task for task in json.load(answer)["tasks"] if said in json.dumps(task)]


def main(say: Say, stream: Say) -> None:
    """Run the checks that are asked for: `say` waits for the answer, `stream` joins its pieces."""

    async def chats() -> None:
        said = word()
        same(await say((), f"echo {said}"), said)

    async def streams() -> None:
        same((await stream((), "chunks 20")).count("#"), 20)

    async def converses() -> None:
        """Words of all kinds come back as they are, so that the conversation is known again."""
        first, then = f"{word()}\r\n tail  \n\nü 🎈", word()
        same(await say((), f"echo {first}"), first)
        same(await say((f"echo {first}", first), f"echo {then}"), then)
        (one,), (other,) = tasks(first[:12]), tasks(then)
        same(one["contextId"], other["contextId"])

    async def fails_once() -> None:
        """It repeats nothing, or its repetition joins."""
        said = word()
        try:
            text = await say((), f"fail {said}")
        except Exception:  # noqa: BLE001 - each raises an error of its own
            text = ""
        same(text, "")
        same(len(tasks(said)), 1)

    async def tells_failures() -> None:
        """Words or an exception: a stream that breaks off is never a short answer."""
        said = word()
        try:
            found = await stream((), f"fail {said}")
        except Exception as fault:  # noqa: BLE001 - each raises an error of its own
            found = "".join(traceback.format_exception(fault))
        assert said in found, f"{found!r} has no {said!r}"

    checks = (chats, streams, converses, fails_once, tells_failures)
    logging.disable(logging.ERROR)
    for name in os.environ["CHECKS"].split(","):
        check, why = next(each for each in checks if each.__name__ == name), ""
        try:
            asyncio.run(asyncio.wait_for(check(), PATIENCE))
        except Exception as fault:  # noqa: BLE001 - it is told
            why = "".join(traceback.format_exception(fault))
        print(json.dumps({"binding": "OPENAI", "check": name, "why": why}), file=_told, flush=True)
