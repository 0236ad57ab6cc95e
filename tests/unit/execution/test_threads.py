"""Threads for agents: they are used again, and replaced when they are left to an agent that does not end."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator

import pytest

from a2a_tasks.execution import agent_call
from a2a_tasks.execution.agent_call import RunThreads
from a2a_tasks.execution.threads import Threads
from tests.support.execution.waiting import eventually

#: Longest a test waits for a thread, in seconds.
PATIENCE = 20


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """Set at the end of a test at the latest: no thread of it stays."""
    event = threading.Event()
    yield event
    event.set()


def ident() -> int:
    """Who is at it?"""
    return threading.get_ident()


def test_a_job_gives_what_its_work_returns_or_raises() -> None:
    threads = Threads(lambda: 1)
    assert threads.submit(lambda: 7, "a").future.result(PATIENCE) == 7
    failing = threads.submit(lambda: 1 // 0, "a")
    assert isinstance(failing.future.exception(PATIENCE), ZeroDivisionError)


def test_a_free_thread_is_used_again_and_no_more_are_begun_than_may_be() -> None:
    threads = Threads(lambda: 2)
    assert len({threads.submit(ident, "a").future.result(PATIENCE) for _ in range(20)}) <= 2
    met = threading.Barrier(2)  # two at a time, so by two threads
    jobs = [threads.submit(lambda: (met.wait(PATIENCE), ident())[1], "a") for _ in range(10)]
    assert len({job.future.result(PATIENCE) for job in jobs}) == 2


def test_a_job_cancelled_before_it_begins_is_not_done(go: threading.Event) -> None:
    threads, done = Threads(lambda: 1), threading.Event()
    first = threads.submit(lambda: go.wait(PATIENCE), "a")
    eventually(first.future.running)
    second = threads.submit(done.set, "a")
    assert second.future.cancel()
    go.set()
    threads.submit(lambda: None, "a").future.result(PATIENCE)
    assert not done.is_set()


def test_whoever_waits_gets_a_thread_when_another_is_abandoned(go: threading.Event) -> None:
    threads, begun = Threads(lambda: 1), threading.Event()

    def sit() -> int:
        begun.set()
        go.wait(PATIENCE)
        return ident()

    stuck = threads.submit(sit, "a")
    assert begun.wait(PATIENCE)
    waiting = threads.submit(ident, "a")
    assert not waiting.future.done()
    for _ in range(2):  # the second time changes nothing
        threads.abandon(stuck)
    other = waiting.future.result(PATIENCE)
    go.set()
    lost = stuck.future.result(PATIENCE)
    assert lost != other
    eventually(lambda: lost not in {thread.ident for thread in threading.enumerate()})
    assert threads.submit(ident, "a").future.result(PATIENCE) == other, "there is one thread"


def test_abandoning_a_job_that_is_over_or_waits_changes_nothing(go: threading.Event) -> None:
    threads = Threads(lambda: 1)
    over = threads.submit(ident, "a")
    thread = over.future.result(PATIENCE)
    threads.abandon(over)
    busy = threads.submit(lambda: go.wait(PATIENCE), "a")
    eventually(busy.future.running)
    waiting = threads.submit(ident, "a")
    threads.abandon(waiting)
    assert not waiting.future.done()
    go.set()
    assert waiting.future.result(PATIENCE) == thread


def test_abandoned_and_ending_at_once_every_job_is_done() -> None:
    threads, results = Threads(lambda: 2), []

    def work(number: int) -> int:
        return number + 0 * sum(range(500))

    for n in range(300):
        short = threads.submit(lambda: sum(range(200)), "a")
        other = threads.submit(functools.partial(work, n), "a")
        threads.abandon(short)
        results.append(other.future.result(PATIENCE))
        assert short.future.result(PATIENCE) == sum(range(200))
    assert results == list(range(300))


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The first thread of this test cannot be begun; the list holds it."""
    refused: list[threading.Thread] = []
    start = threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        if thread.name == "agent" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    return refused


def test_a_thread_that_cannot_be_begun_takes_no_place(no_memory: list[threading.Thread]) -> None:
    threads = Threads(lambda: 1)
    with pytest.raises(RuntimeError, match="can't start"):
        threads.submit(lambda: 1, "agent")
    assert no_memory
    assert threads.submit(lambda: 2, "agent").future.result(10) == 2


async def test_a_run_waits_until_there_is_memory_for_a_thread(
    no_memory: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_call, "_threads", Threads())
    monkeypatch.setattr(agent_call, "AGAIN_SECONDS", 0.01)
    assert await RunThreads("agent").in_thread(lambda: 1) == 1
    assert no_memory
