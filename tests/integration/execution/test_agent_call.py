"""Whatever kind of function `run` is, it becomes one iterator of what the agent says."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from a2a_tasks.agents import Turn
from a2a_tasks.agents.turn import Later
from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.execution.agent_call import drive
from a2a_tasks.models import Task
from a2a_tasks.protocol.values import Message, Part, Role
from tests.support.agents_under_test import playing
from tests.support.execution.waiting import until


def turn(text: str = "hello") -> Turn:
    """A turn of nobody's task."""
    message = Message(message_id="m", role=Role.USER, parts=(Part(text=text),))
    loop = asyncio.get_running_loop()

    async def nothing() -> list[Any]:
        return []

    return Turn(
        message=message,
        task_id="t",
        context_id="c",
        caller=ANONYMOUS,
        history=Later(nothing, loop),
        references=Later(nothing, loop),
        memory={},
    )


async def heard(run: Callable[[Turn], Any]) -> list[Any]:
    """Everything an agent says."""
    with playing(run) as agent:
        return [said async for said in drive(agent, turn())]


async def async_generator(turn: Turn) -> AsyncIterator[str]:
    yield turn.text
    await asyncio.sleep(0)
    yield "bye"


async def coroutine(turn: Turn) -> str:
    await asyncio.sleep(0)
    return turn.text


def generator(turn: Turn) -> Iterator[str]:
    yield turn.text
    yield "bye"


def plain(turn: Turn) -> str:
    return turn.text


class TestKinds:
    @pytest.mark.parametrize("run", [async_generator, generator])
    async def test_generators_say_many_things(self, run: Callable[[Turn], Any]) -> None:
        assert await heard(run) == ["hello", "bye"]

    @pytest.mark.parametrize("run", [coroutine, plain])
    async def test_functions_say_one(self, run: Callable[[Turn], Any]) -> None:
        assert await heard(run) == ["hello"]

    async def test_nothing_returned_is_nothing_said(self) -> None:
        async def silent(turn: Turn) -> None:
            await asyncio.sleep(0)

        assert await heard(silent) == []
        assert await heard(lambda turn: None) == []
        assert await heard(lambda turn: silent(turn)) == []

    async def test_a_plain_function_may_return_what_is_to_be_awaited(self) -> None:
        assert await heard(lambda turn: coroutine(turn)) == ["hello"]

    async def test_a_plain_function_may_return_an_async_generator(self) -> None:
        assert await heard(lambda turn: async_generator(turn)) == ["hello", "bye"]

    async def test_the_empty_text_is_something_said(self) -> None:
        assert await heard(lambda turn: "") == [""]


class TestThreads:
    async def test_synchronous_agents_run_beside_the_loop(self) -> None:
        names: list[str] = []

        def run(turn: Turn) -> Iterator[str]:
            names.append(threading.current_thread().name)
            yield "x"
            names.append(threading.current_thread().name)

        await heard(run)
        assert all(name.startswith("agent") for name in names)
        assert len(names) == 2

    async def test_the_next_step_waits_until_the_last_word_was_taken(self) -> None:
        said: list[int] = []

        def run(turn: Turn) -> Iterator[int]:
            for n in range(3):
                said.append(n)
                yield n

        with playing(run) as agent:
            async with contextlib.aclosing(drive(agent, turn())) as words:
                await anext(words)
                assert said == [0]
                await anext(words)
                assert said == [0, 1]

    async def test_a_synchronous_agent_may_wait_for_its_history(self) -> None:
        assert await heard(lambda turn: str(turn.history.now())) == ["[]"]

    @pytest.mark.django_db
    async def test_a_synchronous_agents_queries_leave_no_connection_open(self) -> None:
        raw: list[Any] = []

        def run(turn: Turn) -> Iterator[str]:
            yield str(Task.objects.count())
            raw.append(connection.connection)
            yield str(Task.objects.count())

        assert await heard(run) == ["0", "0"]
        assert raw == [None]


class TestEndings:
    @pytest.mark.parametrize("kind", ["async generator", "coroutine", "generator", "plain"])
    async def test_what_an_agent_raises_comes_out(self, kind: str) -> None:
        async def async_raising(turn: Turn) -> AsyncIterator[str]:
            yield "x"
            raise LookupError("here")

        async def coroutine_raising(turn: Turn) -> str:
            raise LookupError("here")

        def raising(turn: Turn) -> Iterator[str]:
            yield "x"
            raise LookupError("here")

        def plain_raising(turn: Turn) -> str:
            raise LookupError("here")

        runs: dict[str, Callable[[Turn], Any]] = {
            "async generator": async_raising,
            "coroutine": coroutine_raising,
            "generator": raising,
            "plain": plain_raising,
        }
        with pytest.raises(LookupError, match="here"):
            await heard(runs[kind])

    async def test_a_generator_left_alone_is_closed(self) -> None:
        closed = threading.Event()

        def run(turn: Turn) -> Iterator[str]:
            try:
                yield "x"
                yield "y"
            finally:
                closed.set()

        with playing(run) as agent:
            async with contextlib.aclosing(drive(agent, turn())) as words:
                assert await anext(words) == "x"
            assert await until(closed.is_set)

    async def test_an_async_generator_left_alone_is_closed_at_once(self) -> None:
        closed = asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[str]:
            try:
                yield "x"
                yield "y"
            finally:
                await asyncio.sleep(0)
                closed.set()

        with playing(run) as agent:
            async with contextlib.aclosing(drive(agent, turn())) as words:
                assert await anext(words) == "x"
            assert closed.is_set()

    async def test_a_generator_cancelled_in_its_step_is_left_to_end_it(self) -> None:
        begun, go, ended = threading.Event(), threading.Event(), threading.Event()

        def run(turn: Turn) -> Iterator[str]:
            try:
                begun.set()
                go.wait(30)
                yield "x"
            finally:
                ended.set()

        async def listen() -> None:
            with playing(run) as agent:
                async for _ in drive(agent, turn()):
                    pass

        listening = asyncio.ensure_future(listen())
        await asyncio.to_thread(begun.wait, 30)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        go.set()

        def closed() -> bool:
            gc.collect()
            return ended.is_set()

        assert await until(closed)
