"""`turn.usage`: the sums are written with the end of a turn; what a step spent is counted once, also after a crash."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import pytest

from a2a_project.operations import TABLE
from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.agents.host_extensions import USAGE
from a2a_tasks.models import RunLine, Step, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.requests import GetTaskRequest, ListTasksRequest, SubscribeToTaskRequest
from a2a_tasks.store.append import append
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import LeaseLost, RunEnd
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state, take_away
from tests.support.execution.waiting import until
from tests.support.store.world import Pen, held

pytestmark = [
    pytest.mark.quick_on("sqlite"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("local_runs"),
]


async def stored(task: str) -> Any:
    """The usage in the row of a task."""
    row = await run_in_thread(Task.objects.get, public_id=task)
    return msgspec.json.decode(row.usage) if row.usage else {}


class TestSums:
    @pytest.mark.parametrize("kind", ["loop", "thread"])
    async def test_are_made_by_model_over_all_turns_of_a_task(self, kind: str) -> None:
        def report(turn: Turn) -> Any:
            turn.usage(model="large", input_tokens=10, output_tokens=5, cached_tokens=3, cost=0.5)
            turn.usage(model="large", input_tokens=1, output_tokens=1, requests=2)
            turn.usage(model="small", input_tokens=7)
            return turn.ask("more?") if turn.text == "one" else turn.complete()

        async def report_later(turn: Turn) -> Any:
            return report(turn)

        with playing(report if kind == "thread" else report_later) as agent:
            alice = Client(agent)
            task = await alice.send("one")
            once: dict[str, dict[str, float]] = {
                "large": {
                    "requests": 3,
                    "inputTokens": 11,
                    "outputTokens": 6,
                    "cachedTokens": 3,
                    "cost": 0.5,
                },
                "small": {"requests": 1, "inputTokens": 7},
            }
            assert await stored(task.id) == once
            await alice.send("two", task_id=task.id)
        twice = {
            model: {name: 2 * figure for name, figure in sums.items()}
            for model, sums in once.items()
        }
        assert await stored(task.id) == twice

    async def test_of_a_turn_that_failed_count(self) -> None:
        async def run(turn: Turn) -> None:
            turn.usage(model="m", input_tokens=1)
            raise AgentError("no")

        with playing(run) as agent:
            task = await Client(agent).send()
        assert await stored(task.id) == {"m": {"requests": 1, "inputTokens": 1}}

    async def test_are_not_changed_by_figures_that_cannot_be_true(self) -> None:
        async def run(turn: Turn) -> str:
            turn.usage(model="m", input_tokens=-1)
            turn.usage(model="m", output_tokens=10**13)
            turn.usage(model="", requests=1)
            turn.usage(model="m", cost=float("nan"))
            turn.usage(model="m", cached_tokens=1.5)  # type: ignore[arg-type]
            turn.usage(model="m", input_tokens=True)
            return "x"

        with playing(run) as agent:
            task = await Client(agent).send()
            lines = RunLine.objects.filter(logger="turn.usage").order_by("pk")
            texts = lines.values_list("text", flat=True)
            await until(lambda: run_in_thread(lambda: lines.count() == 6))
        assert await stored(task.id) == {}
        found = await run_in_thread(list, texts)
        assert "input_tokens=-1" in found[0]
        assert "cost=nan" in found[3]

    async def test_name_at_most_fifty_models(self) -> None:
        async def run(turn: Turn) -> str:
            for number in range(60):
                turn.usage(model=f"m{number}")
            return "x"

        with playing(run) as agent:
            task = await Client(agent).send()
        found = await stored(task.id)
        assert len(found) == 51
        assert found["others"] == {"requests": 10}

    async def test_are_not_written_by_a_run_that_lost_its_task(self) -> None:
        run = await run_in_thread(held)
        await run_in_thread(take_away, run.task_id)
        batch = Pen(run).batch(end=RunEnd(), usage='{"m":{"requests":1}}')
        with pytest.raises(LeaseLost):
            await run_in_thread(append, batch)
        assert await stored(run.task_id) == {}


class TestAfterACrash:
    async def test_what_a_step_spent_is_counted_once_and_what_a_lost_attempt_spent_is_not(
        self,
    ) -> None:
        calls: list[str] = []

        async def run(turn: Turn) -> str:
            def call(name: str) -> str:
                calls.append(name)
                turn.usage(model="in a step", input_tokens=10)
                return name

            async def nested() -> str:
                return str(await turn.step("inner", call, "inner"))

            await turn.step("first", call, "first")
            await turn.step("outer", nested)
            turn.usage(model="outside", input_tokens=1)
            if turn.attempt == 1:
                await asyncio.Event().wait()
            return str(await turn.step("last", call, "last"))

        with playing(run) as agent:
            alice = Client(agent)
            task = await alice.begin()
            await until(lambda: calls == ["first", "inner"])
            await until(lambda: run_in_thread(_count_steps, 3))
            await run_in_thread(take_away, task.id)
            await until(lambda: client_state(alice, task.id, "completed"))
        assert calls == ["first", "inner", "last"]
        assert await stored(task.id) == {
            "in a step": {"requests": 3, "inputTokens": 30},
            "outside": {"requests": 1, "inputTokens": 1},
        }

    async def test_a_step_that_raised_and_is_tried_again_has_spent_twice(self) -> None:
        def run(turn: Turn) -> str:
            tries = []

            def call() -> str:
                tries.append(1)
                turn.usage(model="m")
                if len(tries) == 1:
                    raise ValueError
                return "x"

            with contextlib.suppress(ValueError):
                turn.step("call", call).now()
            return str(turn.step("call", call).now())

        with playing(run) as agent:
            task = await Client(agent).send()
        assert await stored(task.id) == {"m": {"requests": 2}}


def _count_steps(count: int) -> bool:
    return Step.objects.count() == count


class TestOnTheWire:
    async def test_only_clients_that_activate_the_extension_see_it(self) -> None:
        async def run(turn: Turn) -> Any:
            turn.usage(model="m", output_tokens=2)
            return turn.ask("more?")

        expected = {USAGE.uri: {"m": {"requests": 1, "outputTokens": 2}}}
        with playing(run, reports_usage=True) as agent:
            alice = Client(agent)
            active = {"extensions": (USAGE.uri,)}
            sent = await TABLE["SendMessage"](alice.request("x"), alice.call(**active))
            assert metadata(sent) == expected
            request = GetTaskRequest(id=sent.id)
            assert metadata(await TABLE["GetTask"](request, alice.call(**active))) == expected
            assert metadata(await TABLE["GetTask"](request, alice.call())) == {}
            page = await TABLE["ListTasks"](ListTasksRequest(), alice.call(**active))
            assert [metadata(task) for task in page.tasks] == [expected]
            stream = await TABLE["SubscribeToTask"](
                SubscribeToTaskRequest(id=sent.id), alice.call(**active)
            )
            assert metadata(stream.first) == expected
            await stream.close()


def metadata(task: values.Task) -> Any:
    """The metadata of a task, decoded."""
    return msgspec.json.decode(task.metadata) if task.metadata else {}
