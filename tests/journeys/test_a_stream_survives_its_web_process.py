"""A stream opened on one web process is resumed on another after the first was killed: nothing missing or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.journeys.hosts import Web, web, worker
from tests.journeys.wire import folded, plain

pytestmark = pytest.mark.backend("stack")
PIECES = 60


@pytest.fixture
def webs(emptied: None) -> Iterator[tuple[Web, Web]]:
    """Two web processes and a worker."""
    with ExitStack() as running:
        running.enter_context(worker())
        yield running.enter_context(web()), running.enter_context(web())


@pytest.mark.parametrize("seen", [1, 2, 20])
async def test_the_second_process_goes_on_where_the_killed_one_stopped(
    webs: tuple[Web, Web], seen: int
) -> None:
    doomed, other = webs
    async with plain(doomed.url, "ticker") as first, plain(other.url, "ticker") as second:
        async with first.stream(str(PIECES)) as stream:
            await stream.read(until=seen)
            doomed.process.kill()
            with pytest.raises(httpx.TransportError):
                await stream.read()
        async with second.resume(stream.task_id, after=stream.last) as rest:
            await rest.read()

        log = await second.log(stream.task_id)
        begun, *events = stream.seen
        assert [*events, *rest.seen] == log
        assert [event.number for event in log] == list(range(2, log[-1].number + 1))
        pieces = [e.said["artifactUpdate"] for e in log if "artifactUpdate" in e.said]
        assert [p["artifact"]["parts"][0]["text"] for p in pieces] == [
            f"#{i};" for i in range(PIECES)
        ]
        task = await second.get(stream.task_id)
        assert folded(begun.said["task"], log).items() <= task.items()


async def test_without_a_number_it_begins_with_the_task_as_it_is(webs: tuple[Web, Web]) -> None:
    doomed, other = webs
    async with plain(doomed.url, "ticker") as first, plain(other.url, "ticker") as second:
        async with first.stream(str(PIECES)) as stream:
            await stream.read(until=20)
            doomed.process.kill()
        async with second.resume(stream.task_id) as rest:
            begun, *events = await rest.read()
        task = await second.get(stream.task_id)
        assert folded(begun.said["task"], events).items() <= task.items()
        assert [event.number for event in events] == list(range(begun.number + 1, rest.last + 1))
