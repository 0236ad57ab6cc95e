"""Rolling restarts: `make restart` replaces the processes of a real stack again and again under mixed load."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import httpx

from lab.faultlab.client import Client
from lab.faultlab.history import Record
from lab.faultlab.lab import Episode, Lab, Plan
from lab.faultlab.private import eventually
from tests.support.end_with_parent import end_with_parent
from tests.support.ports import free_port

__all__ = ["PLAN", "ROLLS", "run"]

#: Stories a second; each is about five requests.
RATE = 4.0
#: Stories at once, so that a slow machine is not buried.
MAX_COUNT = 80
#: Rolls of one episode: what the checker reads at once.
ROLLS = 5
#: Seconds an episode may take.
MAX_LENGTH = 900.0
#: What is asked for, how, and how often. `careful` is left out: at a deploy it may be run again (decision 4).
STORIES = (
    *[("short", "block"), ("stream", "block"), ("long", "block")],
    *[("stream", "stream")] * 3,
    *[("long", "stream")] * 4,
    *[("short", ""), ("steps", ""), ("thread", ""), ("ask", ""), ("delegate", ""), ("park", "")],
)
#: The labs it is run in: the stack starts the processes.
PLAN = Plan(webs=0, workers=0, beat=False)
#: One name for all web processes: they share a port.
NAME = "stack"


def run(lab: Lab, rolls: int, seed: int) -> Episode:
    """So many rolls of a stack of two web processes, two workers and beat, in a lab that has no processes itself."""
    with stack(lab):
        drive = partial(_drive, lab, rolls)
        return lab.episode("rolling", seed, drive, settling=MAX_LENGTH / 2)


# --- the stack --------------------------------------------------------------------------------------


@contextmanager
def stack(lab: Lab) -> Iterator[None]:
    """The stack as an operator starts it, with two web processes and two workers."""
    port = free_port()
    lab.urls = {NAME: f"http://127.0.0.1:{port}"}
    environ = {"PORT": str(port), "WEB_CONCURRENCY": "2", "ARGS": "-c worker=2"}
    with (lab.logs / "stack.log").open("wb") as log:
        begun = subprocess.Popen(
            ["make", "--silent", "stack"],  # noqa: S607
            cwd=lab.plan.source,
            env={**lab.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        try:
            eventually(lambda: _answers(lab), 120, "the stack did not answer")
            yield
        finally:
            begun.send_signal(signal.SIGTERM)
            begun.wait(60)


def _answers(lab: Lab) -> bool:
    """Is everything there: a web process, and the last worker?"""
    log = (lab.logs / "stack.log").read_bytes()
    try:
        ready = httpx.get(f"{lab.urls[NAME]}/readyz", trust_env=False, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False
    return ready and log.count(b" ready.") >= 2


# --- the load ---------------------------------------------------------------------------------------


class Counting(httpx.AsyncHTTPTransport):
    """Counts requests, and what broke: at the connection, before the answer, or within it."""

    def __init__(self) -> None:
        super().__init__(limits=httpx.Limits(max_connections=None, max_keepalive_connections=20))
        self.requests = 0
        self.broken: Counter[str] = Counter()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass it on."""
        self.requests += 1
        try:
            answer = await super().handle_async_request(request)
        except httpx.HTTPError as fault:
            self.broken[f"{type(fault).__name__} before the answer: {fault}"] += 1
            raise
        answer.stream = Watched(answer.stream, self.broken)
        return answer


class Watched(httpx.AsyncByteStream):
    """A body that is read; what breaks in it is counted."""

    def __init__(self, stream: Any, broken: Counter[str]) -> None:
        self._stream, self._broken = stream, broken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Pass it on."""
        try:
            async for piece in self._stream:
                yield piece
        except httpx.HTTPError as fault:
            self._broken[f"{type(fault).__name__} within the answer: {fault}"] += 1
            raise

    async def aclose(self) -> None:
        """Pass it on."""
        await self._stream.aclose()


class Load:
    """Stories begun at a rate, each to its end."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self._client, self._rng = client, rng
        self._stories: set[asyncio.Task[Any]] = set()
        self.failures: list[BaseException] = []

    async def go_on(self) -> None:
        """Begin stories until cancelled."""
        while True:
            if len(self._stories) < MAX_COUNT:
                self._begin()
            await asyncio.sleep(1 / RATE)

    def _begin(self) -> None:
        cancels = self._rng.random() < 0.1
        story = self._client.cancel_when_working() if cancels else self._carry()
        task = asyncio.ensure_future(story)
        self._stories.add(task)
        task.add_done_callback(self._ended)

    def _carry(self) -> Any:
        shape, how = self._rng.choice(STORIES)
        return self._client.carry(shape, how=how)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._stories.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.failures.append(fault)

    async def end(self) -> None:
        """Wait for the stories that have begun. Raises what one of them did."""
        while self._stories:
            await asyncio.wait(self._stories)
        if self.failures:
            raise self.failures[0]


async def _lag(lags: list[float]) -> None:
    """How late this process is, again and again: what its figures are worth on a busy machine."""
    while True:
        begun = time.monotonic()
        await asyncio.sleep(0.1)
        lags.append(time.monotonic() - begun - 0.1)


async def _drive(lab: Lab, rolls: int, rng: random.Random) -> dict[str, Any]:
    transport = Counting()
    client = Client(lab.urls, lab.tell, rng, transport=transport)
    load = Load(client, rng)
    begun = time.monotonic()
    loading = asyncio.create_task(load.go_on())
    lags: list[float] = []
    measuring = asyncio.create_task(_lag(lags))
    try:
        seconds = [await _roll(lab, rng) for _ in range(rolls)]
        spent = time.monotonic() - begun
        loading.cancel()
        await load.end()
    finally:
        loading.cancel()
        measuring.cancel()
        await client.close()
    return {
        "lag": max(lags),
        "cores_wanted": os.getloadavg()[1],
        "rolls": [round(second, 1) for second in seconds],
        "seconds": round(spent, 1),
        "requests": transport.requests,
        "broken": dict(transport.broken),
        **_streams(lab.history()),
    }


async def _roll(lab: Lab, rng: random.Random) -> float:
    """One restart, begun at some moment; the seconds it took. Raises AssertionError when it stopped."""
    await asyncio.sleep(rng.random() * 2)
    lab.tell(what="fault", name="roll", process=NAME, pid=None, action="term")
    begun = time.monotonic()
    done = await asyncio.to_thread(
        subprocess.run,
        ["make", "--silent", "restart"],
        cwd=lab.plan.source,
        env=lab.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return time.monotonic() - begun


# --- figures ----------------------------------------------------------------------------------------


def _streams(history: list[Record]) -> dict[str, Any]:
    """How many streams a deploy ended, how many went on from an event, and the longest wait for the next one."""
    closed = {str(record["stream"]): record for record in history if record.what == "closed"}
    last: dict[str, Record] = {str(r["stream"]): r for r in history if r.what == "frame"}
    ended = [name for name, record in closed.items() if record["how"] == "end"]
    opened = [record for record in history if record.what == "opened"]
    resumed = [r for r in opened if r["how"] == "subscribe" and (r.get("after") or 0) > 0]
    return {
        "streams": len(opened),
        "streams_cut": sum(record["how"] != "end" for record in closed.values()),
        "streams_ended_by_deploy": sum(not _settles(last.get(name)) for name in ended),
        "streams_resumed": len(resumed),
        "pauses": _pauses(history),
        "refused": dict(_refusals(history)),
    }


def _settles(frame: Record | None) -> bool:
    state = ((frame["body"] if frame else {}).get("status") or {}).get("state", "")
    return state not in {"", "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}


def _refusals(history: list[Record]) -> Counter[str]:
    told = [r for r in history if r.what in {"refused", "failed-request", "not-cancelled"}]
    return Counter(f"{r.get('operation', 'send')} {r.get('status', 400)}" for r in told)


def _pauses(history: list[Record]) -> list[float]:
    """For each task whose stream was followed from its send on, the longest wait between two new events."""
    moments: dict[str, dict[int, float]] = {}
    followed, live = _followed(history), _live(history)
    for record in history:
        if record.what == "frame" and record["task"] in followed and record["stream"] in live:
            moments.setdefault(record["task"], {}).setdefault(record["id"], record.t)
    times = [[seen[number] for number in sorted(seen)] for seen in moments.values()]
    return [max((b - a for a, b in pairwise(seen)), default=0.0) for seen in times]


def _followed(history: list[Record]) -> set[str]:
    """Tasks that say something ten times a second, and were sent as streams."""
    ticking = {r["key"] for r in history if r.what == "sent" and r["shape"] in {"stream", "long"}}
    tasks = {r["task"] for r in history if r.what == "accepted" and r["key"] in ticking}
    sends = {r["stream"] for r in history if r.what == "opened" and r["how"] == "send"}
    return tasks & {r["task"] for r in history if r.what == "frame" and r["stream"] in sends}


def _live(history: list[Record]) -> set[str]:
    """Streams that are no replays: those of a send, and those that go on after an event."""
    opened = [record for record in history if record.what == "opened"]
    return {r["stream"] for r in opened if r["how"] == "send" or r.get("after")}
