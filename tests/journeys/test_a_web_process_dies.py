"""A web process is killed with streams open: on another one they go on where they stopped, nothing missing or doubled."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from tests.journeys.hosts import SHARED, Host, web
from tests.journeys.waiting import PATIENCE
from tests.journeys.wire import Stream, folded, message, plain

pytestmark = pytest.mark.backend("stack")
PIECES = 60
#: The events that a client had read when the process was killed: the first after the task, the next, and many.
SEEN = (1, 2, 20)


async def test_every_stream_goes_on_at_the_next_process(site: Host, tmp_path: Path) -> None:
    killed = tmp_path / "killed"  # no stream ends before
    text = f"{PIECES} {killed}"
    request, key = message(text), {"Idempotency-Key": "once"}
    sends = "agents/ticker/message:stream"
    async with (
        plain(site.here, "ticker") as other,
        httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http,
        AsyncExitStack() as streams,
    ):
        with web(SHARED) as doomed:
            first = await streams.enter_async_context(plain(doomed.url, "ticker"))
            torn = [await streams.enter_async_context(first.stream(text)) for _ in SEEN]
            keyed = Stream(
                await streams.enter_async_context(
                    http.stream("POST", f"{doomed.url}/{sends}", json=request, headers=key)
                )
            )
            for stream, seen in zip([*torn, keyed], [*SEEN, 20], strict=True):
                await stream.read(until=seen)
            doomed.process.kill()
            for stream in torn:
                with pytest.raises(httpx.TransportError):
                    await stream.read()
            killed.touch()

        for stream in torn:  # by the number of the last event
            async with other.resume(stream.task_id, after=stream.last) as rest:
                await rest.read()
            log = await other.log(stream.task_id)
            begun, *events = stream.seen
            assert [*events, *rest.seen] == log
            assert [event.number for event in log] == list(range(2, log[-1].number + 1))
            pieces = [e.said["artifactUpdate"] for e in log if "artifactUpdate" in e.said]
            assert [p["artifact"]["parts"][0]["text"] for p in pieces] == [
                f"#{i};" for i in range(PIECES)
            ]
            task = await other.get(stream.task_id)
            assert folded(begun.said["task"], log).items() <= task.items()

        # by sending the same again: with the number of the last event, and without it
        after = {**key, "Last-Event-ID": str(keyed.last)}
        async with http.stream("POST", f"{site.here}/{sends}", json=request, headers=after) as sent:
            remaining = await Stream(sent).read()
        async with http.stream("POST", f"{site.here}/{sends}", json=request, headers=key) as sent:
            opened, *whole = await Stream(sent).read()
        assert [*keyed.seen[1:], *remaining] == whole
        assert opened.said["task"]["id"] == keyed.task_id
        assert [event.number for event in whole] == list(range(2, whole[-1].number + 1))


async def test_without_a_number_a_stream_begins_with_the_task_as_it_is(
    site: Host, tmp_path: Path
) -> None:
    resumed = tmp_path / "resumed"
    async with plain(site.here, "ticker") as first, plain(site.there, "ticker") as second:
        async with first.stream(f"{PIECES} {resumed}") as stream:
            await stream.read(until=20)
        async with second.resume(stream.task_id) as rest:
            await rest.read(until=1)
            resumed.touch()
            begun, *events = await rest.read()
        task = await second.get(stream.task_id)
        assert folded(begun.said["task"], events).items() <= task.items()
        assert [event.number for event in events] == list(range(begun.number + 1, rest.last + 1))
