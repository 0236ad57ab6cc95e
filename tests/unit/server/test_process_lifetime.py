"""A process's life: told once, everybody told, nothing lost by one that fails."""

from __future__ import annotations

import asyncio
import threading

import pytest

from a2a_tasks.process_lifetime import Lifetime


def broken() -> None:
    raise ValueError("on purpose")


def test_listeners_are_told_once_however_often_it_is_asked() -> None:
    life, told = Lifetime(), []
    life.on_drain(lambda: told.append("told"))
    assert not life.is_draining()
    life.begin_drain()
    life.begin_drain()
    assert life.is_draining()
    assert told == ["told"]


def test_helpers_can_see_how_much_of_the_drain_is_left() -> None:
    life = Lifetime()
    assert life.drain_seconds() == 0.0
    life.begin_drain(60)
    assert 0 < life.drain_seconds() <= 60
    life.begin_drain(3600)
    assert life.drain_seconds() <= 60


def test_a_listener_that_comes_late_is_told_at_once() -> None:
    life, told = Lifetime(), []
    life.begin_drain()
    life.on_drain(lambda: told.append("told"))
    assert told == ["told"]


def test_who_unregistered_is_not_told() -> None:
    life, told = Lifetime(), []
    unregister = life.on_drain(lambda: told.append("told"))
    unregister()
    unregister()
    life.begin_drain()
    assert told == []


def test_a_listener_that_fails_does_not_keep_the_others_from_being_told() -> None:
    life, told = Lifetime(), []
    life.on_drain(broken)
    life.on_drain(lambda: told.append("told"))
    life.begin_drain()
    assert told == ["told"]


def test_many_threads_begin_one_drain() -> None:
    life, told = Lifetime(), []
    life.on_drain(lambda: told.append("told"))
    threads = [threading.Thread(target=life.begin_drain) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["told"]


def test_helpers_start_in_order_and_stop_in_reverse() -> None:
    life, seen = Lifetime(), []

    async def note(word: str) -> None:
        seen.append(word)

    for name in ("first", "second"):
        life.on_start(lambda name=name: note(f"start {name}"))  # type: ignore[misc]
        life.on_stop(lambda name=name: note(f"stop {name}"))  # type: ignore[misc]

    async def live() -> None:
        await life.start()
        await life.stop()
        await life.stop()

    asyncio.run(live())
    assert seen == ["start first", "start second", "stop second", "stop first"]


def test_a_helper_that_fails_to_stop_does_not_keep_the_others() -> None:
    life, seen = Lifetime(), []

    async def stop() -> None:
        seen.append("stopped")

    async def fail() -> None:
        broken()

    life.on_stop(stop)
    life.on_stop(fail)
    asyncio.run(life.stop())
    assert seen == ["stopped"]


def test_a_host_that_cannot_start_says_so() -> None:
    life = Lifetime()

    async def fail() -> None:
        broken()

    life.on_start(fail)
    with pytest.raises(ValueError, match="on purpose"):
        asyncio.run(life.start())


def test_a_helper_that_registers_after_the_start_hears_it_instead_of_never_starting() -> None:
    life = Lifetime()
    asyncio.run(life.start())

    async def never() -> None:
        """Not called."""

    with pytest.raises(RuntimeError, match="too late"):
        life.on_start(never)
