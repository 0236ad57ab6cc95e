"""Scripts for conformance kits, chosen by the start of the message id, or of the text (the YAML suite ACTS)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from a2a_tasks.agents import Turn, data, file, link

Words = AsyncIterator[Any]
TEXT = "Generated text content"
LONG_SECONDS = 10.0
#: The beginning of a text of ACTS, and the mark of its conversation. A message *id* that begins so asks once.
MULTI_TURN = "tck-multi-turn"


async def complete(turn: Turn) -> Words:
    yield turn.complete("Hello from TCK")


async def require_input(turn: Turn) -> Words:
    yield turn.ask("More input is required")


async def ask_until_done(turn: Turn) -> Words:
    """Ask again until the text is `done` (ACTS)."""
    if turn.text.strip() == "done":
        del turn.memory[MULTI_TURN]
        yield turn.complete("Done")
        return
    turn.memory[MULTI_TURN] = True
    yield turn.ask("More input is required")


async def artifact_text(turn: Turn) -> Words:
    yield turn.artifact(TEXT, id="text", name="text")


async def artifact_file(turn: Turn) -> Words:
    yield turn.artifact(file(TEXT.encode(), "output.txt", "text/plain"), id="file", name="file")


async def artifact_file_url(turn: Turn) -> Words:
    part = link("https://example.com/output.txt", filename="output.txt", media_type="text/plain")
    yield turn.artifact(part, id="file-url", name="file-url")


async def artifact_data(turn: Turn) -> Words:
    yield turn.artifact(data({"key": "value", "count": 42}), id="data", name="data")


async def direct(turn: Turn) -> Words:
    yield turn.reply("Direct message response")


async def reject(turn: Turn) -> Words:
    yield turn.reject("Rejected as asked")


async def fail(turn: Turn) -> Words:
    yield turn.fail("Failed as asked")


async def require_auth(turn: Turn) -> Words:
    yield turn.need_auth("A credential is required")


async def stream_text(turn: Turn) -> Words:
    yield turn.working()
    yield turn.artifact(TEXT, id="text", name="text")


async def stream_chunks(turn: Turn) -> Words:
    yield turn.working()
    stream = turn.stream("chunked")
    for word in ("Generated ", "text ", "content"):
        yield stream.write(word, last=word == "content")


async def run_long(turn: Turn) -> Words:
    """Work for a while with a status every half second, so that subscribers get events."""
    for step in range(int(LONG_SECONDS * 2)):
        yield turn.working(f"Step {step + 1}")
        await asyncio.sleep(0.5)
    yield turn.artifact(TEXT, id="text", name="text")
    yield turn.complete("Done")


#: Longer prefixes come before shorter ones.
SCRIPTS: tuple[tuple[str, Callable[[Turn], Words]], ...] = (
    ("tck-complete-task", complete),
    ("tck-input-required", require_input),
    ("tck-multi-turn", require_input),
    ("tck-artifact-text", artifact_text),
    ("tck-artifact-file-url", artifact_file_url),
    ("tck-artifact-file", artifact_file),
    ("tck-artifact-data", artifact_data),
    ("tck-message-response", direct),
    ("tck-stream-002", direct),
    ("tck-stream-artifact-file", artifact_file),
    ("tck-stream-artifact-chunked", stream_chunks),
    ("tck-stream-chunked", stream_chunks),
    ("tck-stream-", stream_text),
    ("tck-reject-task", reject),
    ("tck-task-failure", fail),
    ("tck-auth-required", require_auth),
    ("tck-long-running", run_long),
    ("tck-cancel", run_long),
    ("test-resubscribe-message-id", run_long),
)


def script(turn: Turn) -> Words | None:
    """Return the script that a kit asks for, or None."""
    if turn.text.startswith(MULTI_TURN) or MULTI_TURN in turn.memory:
        return ask_until_done(turn)
    for asked in (turn.message.message_id, turn.text):
        if not asked.startswith(("tck-", "test-")):
            continue
        for prefix, run in SCRIPTS:
            if asked.startswith(prefix):
                return run(turn)
    return None
