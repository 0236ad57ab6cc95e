"""Threads for agents: they are used again, interrupted when they must be, and replaced when they are lost."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from a2a_tasks.execution import workplace
from a2a_tasks.execution.threads import Threads
from a2a_tasks.execution.workplace import Workplace
from tests.support.execution.waiting import eventually

#: Longest a test waits for a thread, in seconds.
PATIENCE = 20


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """Set at the end of a test at the latest: no thread of it stays."""
    event = threading.Event()
    yield event
    event.set()


def looping(begun: threading.Event, ended: threading.Event) -> Callable[[], None]:
    """Work that looks at nothing, and cleans up."""

    def work() -> None:
        try:
            begun.set()
            while True:
                pass
        finally:
            ended.set()

    return work


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Its two ends; whoever reads sits there until somebody has written."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


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
    assert len(threads._useful) == 2
    assert len({job.future.result(PATIENCE) for job in jobs}) == 2


def test_a_job_cancelled_before_it_begins_is_not_done(go: threading.Event) -> None:
    threads, done = Threads(lambda: 1), threading.Event()
    first = threads.submit(lambda: go.wait(PATIENCE), "a")
    eventually(first.future.running)
    second = threads.submit(done.set, "a")
    assert second.future.cancel()
    assert second.gone
    go.set()
    threads.submit(lambda: None, "a").future.result(PATIENCE)
    assert not done.is_set()


def test_a_forced_job_ends_where_it_is_and_cleans_up() -> None:
    threads, begun, ended = Threads(lambda: 1), threading.Event(), threading.Event()
    job = threads.submit(looping(begun, ended), "a")
    assert begun.wait(PATIENCE)
    job.force()
    assert isinstance(job.future.exception(PATIENCE), asyncio.CancelledError)
    assert ended.is_set()
    eventually(lambda: job.gone)


def test_whoever_waits_gets_a_thread_when_another_is_lost(pipe: tuple[int, int]) -> None:
    """Work in C code that nobody can interrupt: its thread is replaced at once."""
    threads, begun = Threads(lambda: 1), threading.Event()
    here, there = pipe

    def sit() -> None:
        begun.set()
        ctypes.CDLL(None).read(here, ctypes.create_string_buffer(1), 1)

    stuck = threads.submit(sit, "a")
    assert begun.wait(PATIENCE)
    waiting = threads.submit(ident, "a")
    assert not waiting.future.done()
    thread = stuck.thread
    stuck.force()
    assert waiting.future.result(PATIENCE) != (thread.ident if thread else None)
    assert len(threads._useful) == 1
    os.write(there, b".")
    eventually(lambda: stuck.gone)
    assert thread is not None
    thread.join(PATIENCE)
    assert not thread.is_alive(), "a thread that was forced takes no more jobs"


def test_forcing_a_job_that_is_over_hurts_nobody() -> None:
    threads = Threads(lambda: 1)
    job = threads.submit(lambda: None, "a")
    job.future.result(PATIENCE)
    eventually(lambda: job.gone)
    job.force()
    assert threads.submit(lambda: 7, "a").future.result(PATIENCE) == 7
    assert len(threads._useful) == 1


def test_forced_and_ending_at_once_nobody_elses_job_is_hurt() -> None:
    """However the two meet, the exception is raised in the job that was meant, or nowhere."""
    threads, results = Threads(lambda: 2), []

    def work(number: int) -> int:
        return number + 0 * sum(range(500))

    for n in range(300):
        short = threads.submit(lambda: sum(range(200)), "a")
        other = threads.submit(functools.partial(work, n), "a")
        short.force()
        results.append(other.future.result(PATIENCE))
        with contextlib.suppress(asyncio.CancelledError):
            short.future.result(PATIENCE)
    assert results == list(range(300))
    assert len(threads._useful) <= 2


def test_who_is_forced_while_the_result_is_told_tells_it_to_everybody(go: threading.Event) -> None:
    """Whoever heard nothing would wait for ever."""
    threads, heard = Threads(lambda: 1), threading.Event()
    job = threads.submit(lambda: go.wait(PATIENCE), "a")

    def hear_and_force(_: object) -> None:
        job.force()
        sum(range(100))

    job.future.add_done_callback(hear_and_force)
    job.future.add_done_callback(lambda _: heard.set())
    go.set()
    assert heard.wait(PATIENCE)
    assert job.future.result() is True


def test_who_swallows_the_exception_is_forced_again(go: threading.Event) -> None:
    threads, begun, shrugged = Threads(lambda: 1), threading.Event(), threading.Event()

    def stubborn() -> Any:
        try:
            begun.set()
            while True:
                pass
        except BaseException:  # noqa: BLE001 - that is its point
            shrugged.set()
        while True:
            pass

    job = threads.submit(stubborn, "a")
    assert begun.wait(PATIENCE)
    job.force()
    assert shrugged.wait(PATIENCE)
    job.force()
    assert isinstance(job.future.exception(PATIENCE), asyncio.CancelledError)


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
    monkeypatch.setattr(workplace, "_threads", Threads())
    monkeypatch.setattr(workplace, "AGAIN_SECONDS", 0.01)
    assert await Workplace("agent").in_thread(lambda: 1) == 1
    assert no_memory
