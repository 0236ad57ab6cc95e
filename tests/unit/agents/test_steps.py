"""Steps of a turn as an agent sees them, on a journal in memory."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.agents import Journal
from a2a_tasks.agents.steps import as_json
from tests.support.examples.turns import make_turn

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)
NOT_JSON = [
    object(),
    b"bytes",
    {1, 2},
    datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    {"deep": [{"x": object()}]},
    {1: "a key that is no text"},
    (loop := [], loop.append(loop))[0],  # type: ignore[func-returns-value, var-annotated]
]


class Counted:
    """A function that counts its calls."""

    def __init__(self, result: Any = "done") -> None:
        self.result, self.calls = result, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result, or raise it."""
        self.calls += 1
        if isinstance(self.result, BaseException):
            raise self.result
        return [*args, kwargs] if self.result == "arguments" else self.result


class TestResults:
    @given(PLAIN)
    def test_what_is_kept_comes_back_as_it_was(self, result: Any) -> None:
        assert json.loads(as_json("any", result)) == result

    async def test_a_step_returns_what_its_function_returns(self) -> None:
        assert await make_turn("x").step("add", Counted("arguments"), 1, b=2) == [1, {"b": 2}]

    async def test_a_tuple_is_a_list_the_first_time_too(self) -> None:
        assert await make_turn("x").step("pair", Counted((1, 2))) == [1, 2]

    async def test_an_earlier_result_is_given_without_calling(self) -> None:
        work = Counted()
        turn = make_turn("x", journal=Journal({"pay": {"receipt": 7}}))
        assert await turn.step("pay", work) == {"receipt": 7}
        assert work.calls == 0

    async def test_nothing_is_a_result_as_well(self) -> None:
        work = Counted(None)
        assert await make_turn("x", journal=Journal({"pay": None})).step("pay", work) is None
        assert work.calls == 0

    @pytest.mark.parametrize("result", NOT_JSON, ids=lambda value: type(value).__name__)
    async def test_what_json_cannot_say_raises_and_names_the_step(self, result: Any) -> None:
        turn = make_turn("x")
        with pytest.raises(TypeError, match="step 'odd'"):
            await turn.step("odd", Counted(result))
        assert turn._journal.results == {}


class TestNames:
    async def test_a_name_serves_once_a_turn(self) -> None:
        turn = make_turn("x")
        await turn.step("pay", Counted())
        with pytest.raises(ValueError, match="'pay' already"):
            await turn.step("pay", Counted())

    async def test_two_at_a_time_of_one_name_are_refused(self) -> None:
        turn, work = make_turn("x"), Counted()
        results = await asyncio.gather(
            turn.step("pay", work), turn.step("pay", work), return_exceptions=True
        )
        assert [type(result) for result in results] == [str, ValueError]
        assert work.calls == 1

    async def test_a_step_that_raised_is_not_kept_and_may_be_tried_again(self) -> None:
        turn = make_turn("x")
        with pytest.raises(LookupError):
            await turn.step("pay", Counted(LookupError()))
        assert await turn.step("pay", Counted()) == "done"

    @pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "nul\x00", "\ud800"])
    async def test_a_name_is_short_and_printable(self, name: str) -> None:
        with pytest.raises(ValueError, match="printable"):
            await make_turn("x").step(name, Counted())


class TestKinds:
    async def test_a_synchronous_function_does_not_hold_up_the_loop(self) -> None:
        go = threading.Event()
        step = asyncio.ensure_future(waiting(make_turn("x").step("wait", go.wait, 10)))
        await asyncio.sleep(0)
        go.set()  # which the loop could not do while it waits
        assert await step is True

    async def test_a_coroutine_function_is_awaited(self) -> None:
        async def work(x: int) -> int:
            return x + 1

        assert await make_turn("x").step("add", work, 1) == 2
        assert await make_turn("x").step("add", lambda: work(1)) == 2

    async def test_in_a_thread_it_is_waited_for(self) -> None:
        turn, threads = make_turn("x", journal=Journal({"old": 1})), []

        async def work() -> str:
            return threading.current_thread().name

        def agent() -> list[Any]:
            threads.append(threading.current_thread().name)
            here = turn.step("here", lambda: threading.current_thread().name).now()
            return [turn.step("old", Counted()).now(), here, turn.step("loop", work).now()]

        assert await asyncio.to_thread(agent) == [1, threads[0], threading.current_thread().name]

    async def test_on_the_loop_it_must_be_awaited(self) -> None:
        with pytest.raises(RuntimeError, match="use await"):
            make_turn("x").step("pay", Counted()).now()
        with pytest.raises(RuntimeError, match="use await"):
            make_turn("x").sleep(1).now()

    async def test_in_a_thread_too_what_raised_may_be_tried_again(self) -> None:
        turn = make_turn("x")

        def agent() -> Any:
            with pytest.raises(LookupError):
                turn.step("pay", Counted(LookupError())).now()
            return turn.step("pay", Counted()).now()

        assert await asyncio.to_thread(agent) == "done"


async def waiting(step: Any) -> Any:
    """A step as a coroutine."""
    return await step


def woken(step: Any) -> str:
    """Wait for it in vain. (Out of a thread its CancelledError would come as the loop's own.)"""
    with pytest.raises(CancelledError):
        step.now()
    return "woken"


class TestSleep:
    async def test_it_keeps_the_moment_of_waking(self) -> None:
        turn = make_turn("x")
        before = await turn._journal.clock()
        await turn.sleep(0.01, name="nap")
        assert before + 0.01 <= float(turn._journal.results["nap"]) <= before + 20

    async def test_a_moment_that_has_passed_is_not_waited_for(self) -> None:
        async with asyncio.timeout(20):
            await make_turn("x", journal=Journal({"sleep": 0})).sleep(3600)

    async def test_two_sleeps_need_names(self) -> None:
        turn = make_turn("x")
        await turn.sleep(0)
        with pytest.raises(ValueError, match="'sleep' already"):
            await turn.sleep(0)

    async def test_a_sleeping_thread_is_woken_when_nobody_waits(self) -> None:
        turn, asleep = make_turn("x"), threading.Event()

        def agent() -> str:
            asleep.set()
            return woken(turn.sleep(3600))

        sleeping = asyncio.ensure_future(asyncio.to_thread(agent))
        await asyncio.to_thread(asleep.wait, 10)
        turn._stop()
        assert turn.cancelled
        assert await sleeping == "woken"
        assert await asyncio.to_thread(woken, turn.step("more", Counted())) == "woken"
