"""Hints only make things quicker: without them, without the bell, without Redis, everything still completes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.journeys.hosts import QUEUES, QUICK, Web, together, web, worker
from tests.journeys.trace import Trace
from tests.journeys.wire import folded, plain

pytestmark = pytest.mark.backend("stack")
#: Nobody listens there.
NOWHERE = "redis://127.0.0.1:1/0"
NEITHER = ({"CELERY_BROKER_URL": NOWHERE, "REDIS_URL": ""}, {"REDIS_URL": ""})


@contextmanager
def hard_of_hearing(of_web: Mapping[str, str], of_worker: Mapping[str, str]) -> Iterator[str]:
    """A web process and a worker that hear less of each other than they should."""
    with ExitStack() as running:
        deaf = worker(9, {**QUICK, **of_worker}, queues=f"{QUEUES},deaf")
        served, *_ = together(running, web({**QUICK, **of_web}), deaf)
        assert isinstance(served, Web)
        yield served.url


@pytest.fixture(scope="module")
def url(emptied: None) -> Iterator[str]:
    """Of a host with neither hints nor bell. The campaign has the other ways (`lab/faultlab`)."""
    with hard_of_hearing(*NEITHER) as url:
        yield url


async def test_everything_completes_by_polling(url: str) -> None:
    async with plain(url, "ticker") as client:
        async with client.stream("20") as stream:
            begun, *events = await stream.read()
        task = await client.get(stream.task_id)
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert folded(begun.said["task"], events).items() <= task.items()
        assert events == await client.log(stream.task_id)

        assert (await client.send("2"))["status"]["state"] == "TASK_STATE_COMPLETED"

        endless = await client.start("100000")
        async with client.resume(endless) as stream:
            await stream.read(until=3)
            await client.cancel(endless)
            await stream.read()
        last = stream.seen[-1].said["statusUpdate"]["status"]["state"]
        assert last == "TASK_STATE_CANCELED"


async def test_a_cancelled_agent_is_stopped_by_the_heartbeat(url: str, tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace")
    async with plain(url, "deaf-witness") as client:
        task = await client.start(str(trace.path))
        await trace.of("began")
        await client.cancel(task)
        await trace.of("ended")
