"""What programs ask a client of MCP: `main(CHECKS)` in each, run as `python NAME.py URL VERSION`.

The variable CHECKS names the checks that are run. Each is told as one line of JSON, as `talk.py` does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import traceback
import uuid
from collections.abc import Awaitable, Callable, Mapping

#: For the checks alone: what frameworks print goes elsewhere.
_told, sys.stdout = sys.stdout, sys.stderr
#: Seconds for a check: a machine may be busy.
PATIENCE = 60.0
URL = sys.argv[1]


def word() -> str:
    """A word nobody has said before."""
    return uuid.uuid4().hex[:12]


def same(found: object, wanted: object) -> None:
    """Raises AssertionError."""
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def has(found: object, *wanted: str) -> None:
    """Raises AssertionError unless all words are in what was found."""
    assert all(each in str(found) for each in wanted), f"{found!r} has not all of {wanted!r}"


def checks_of(
    call: Callable[[str], Awaitable[object]],
) -> dict[str, Callable[[], Awaitable[object]]]:
    """Checks of a framework, by a function that returns what it shows its model of a call, or raises."""

    async def calls() -> None:
        said = word()
        has(await call(f"echo {said}"), said)

    async def shows_files() -> None:
        said = word()
        has(await call(f"file {said}"), said, "https://example.com/demo.txt")

    async def shows_data() -> None:
        said = word()
        has(await call(f"data {said}"), said)

    async def asks_in_words() -> None:
        said = word()
        has(await call(f"ask Who {said}?"), f"Who {said}?", "call this tool again with task=")

    async def fails() -> None:
        said = word()
        try:
            has(await call(f"fail {said}"), said)
        except Exception as fault:  # noqa: BLE001 - some raise what others show
            has(fault, said)

    return {each.__name__: each for each in (calls, shows_files, shows_data, asks_in_words, fails)}


def main(checks: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
    """Run the checks that are asked for, one after the other."""
    logging.disable(logging.ERROR)
    for name in os.environ["CHECKS"].split(","):
        why = ""
        try:
            asyncio.run(_run(checks[name]))
        except Exception as fault:  # noqa: BLE001 - it is told
            why = "".join(traceback.format_exception(fault))
        print(json.dumps({"binding": "MCP", "check": name, "why": why}), file=_told, flush=True)


async def _run(check: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(PATIENCE):
        await check()
