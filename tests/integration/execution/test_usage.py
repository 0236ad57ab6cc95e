"""`turn.usage`: each report is a row of the ledger, written at once, whatever becomes of its step and its run."""

from __future__ import annotations

import asyncio
import contextlib
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.db import OperationalError

from a2a_project.operations import TABLE
from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.agents.host_extensions import USAGE
from a2a_tasks.agents.usage import UsageReport, make_report, unwrap
from a2a_tasks.execution.meter import Meter
from a2a_tasks.models import Artifact, RunLine, Task, Usage
from a2a_tasks.protocol import values
from a2a_tasks.protocol.requests import GetTaskRequest, ListTasksRequest, SubscribeToTaskRequest
from a2a_tasks.store import usage
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.usage import sum_by_task
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state, take_away
from tests.support.execution.waiting import until
from tests.support.store.world import held

pytestmark = [
    pytest.mark.quick_on("sqlite"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("local_runs"),
]


async def stored(task: str) -> Any:
    """The usage of a task in the ledger."""
    key = await run_in_thread(lambda: Task.objects.get(public_id=task).pk)
    return msgspec.to_builtins((await run_in_thread(sum_by_task, [key])).get(key, {}))


class TestSums:
    @pytest.mark.parametrize("kind", ["loop", "thread"])
    async def test_are_made_by_model_over_all_turns_of_a_task(self, kind: str) -> None:
        def report(turn: Turn) -> Any:
            turn.usage(
                model="large",
                input_tokens=10,
                output_tokens=5,
                cached_tokens=3,
                cache_write_tokens=2,
                cost=0.5,
            )
            turn.usage(model="large", input_tokens=1, output_tokens=1, requests=2)
            turn.usage(model="small", input_tokens=7)
            return turn.ask("more?") if turn.text == "one" else turn.complete()

        async def report_later(turn: Turn) -> Any:
            return report(turn)

        with playing(report if kind == "thread" else report_later) as agent:
            alice = Client(agent)
            task = await alice.send("one")
            once: dict[str, dict[str, Any]] = {
                "large": {
                    "requests": 3,
                    "inputTokens": 11,
                    "outputTokens": 6,
                    "cachedTokens": 3,
                    "cacheWriteTokens": 2,
                    "cost": 0.5,
                    "currency": "USD",
                },
                "small": {"requests": 1, "inputTokens": 7},
            }
            assert await stored(task.id) == once
            await alice.send("two", task_id=task.id)
        twice = {
            model: {name: n if isinstance(n, str) else 2 * n for name, n in sums.items()}
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
            turn.usage(model="m", cost=1, currency="dollars")
            turn.usage(model="m", cost=2e9)
            return "x"

        with playing(run) as agent:
            task = await Client(agent).send()
            lines = RunLine.objects.filter(logger="turn.usage").order_by("pk")
            texts = lines.values_list("text", flat=True)
            await until(lambda: run_in_thread(lambda: lines.count() == 8))
        assert await stored(task.id) == {}
        found = await run_in_thread(list, texts)
        assert "input_tokens=-1" in found[0]
        assert "cost=nan" in found[3]

    async def test_more_tokens_of_a_cache_than_input_are_a_warning(self) -> None:
        async def run(turn: Turn) -> str:
            turn.usage(model="m", input_tokens=12, cached_tokens=5_000)
            turn.usage(model="m", input_tokens=5_012, cached_tokens=5_000, cache_write_tokens=12)
            return "x"

        with playing(run) as agent:
            task = await Client(agent).send()
            lines = RunLine.objects.filter(logger="turn.usage").values_list("text", flat=True)
            await until(lambda: run_in_thread(lines.exists))
        (line,) = await run_in_thread(list, lines)
        assert "5000 tokens of a cache are more than the 12 input tokens" in line
        assert (await stored(task.id))["m"]["requests"] == 2

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

    async def test_of_costs_in_several_currencies_do_not_exist(self) -> None:
        async def run(turn: Turn) -> str:
            await turn.usage(model="one", cost=0.1)
            await turn.usage(model="one", cost=Decimal("0.2"))
            await turn.usage(model="two", cost=1)
            await turn.usage(model="two", cost=1, currency="EUR")
            return "x"

        with playing(run) as agent:
            task = await Client(agent).send()
        assert await stored(task.id) == {
            "one": {"requests": 2, "cost": 0.3, "currency": "USD"},
            "two": {"requests": 2},
        }


class TestRow:
    async def test_tells_whose_call_of_what_it_was(self) -> None:
        async def run(turn: Turn) -> str:
            await turn.step("ask", lambda: turn.usage(model="m", input_tokens=7).now())
            turn.usage(model="n", cost=0.25)
            return "x"

        with playing(run) as agent:
            task = await Client(agent).send()
        one, other = await run_in_thread(lambda: list(Usage.objects.order_by("pk")))
        assert (one.task_id, one.context_id) == (task.id, task.context_id)
        assert (one.owner, one.caller, one.agent) == ("user:alice", "user:alice", agent.slug)
        assert (one.step, one.attempt, one.model, one.input_tokens) == ("ask", 1, "m", 7)
        assert (one.cost, one.currency) == (None, "")
        assert (other.step, other.cost, other.currency) == ("", Decimal("0.25"), "USD")

    async def test_is_written_before_the_await_ends_and_before_later_output(self) -> None:
        seen: list[int] = []

        async def run(turn: Turn) -> Any:
            await turn.usage(model="m")
            seen.append(await run_in_thread(Usage.objects.count))
            turn.usage(model="m")
            yield "x"
            await until(lambda: run_in_thread(Artifact.objects.exists))
            seen.append(await run_in_thread(Usage.objects.count))

        with playing(run) as agent:
            await Client(agent).send()
        assert seen == [1, 2]

    @pytest.mark.django_db(transaction=True)
    async def test_is_written_once_if_the_outcome_of_its_transaction_is_unknown(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lost = [1]

        def lose_answer(name: str) -> None:
            if name == "worker.reported" and lost:
                lost.pop()
                raise OperationalError("the answer is lost")

        monkeypatch.setattr(usage, "failpoint", lose_answer)

        async def run(turn: Turn) -> str:
            await turn.usage(model="m", input_tokens=3)
            return "x"

        with playing(run) as agent:
            task = await Client(agent).send()
        assert not lost
        assert await stored(task.id) == {"m": {"requests": 1, "inputTokens": 3}}

    async def test_of_a_run_that_lost_its_task_is_written(self) -> None:
        run = await run_in_thread(held)
        await run_in_thread(take_away, run.task_id)
        meter = Meter(run)
        meter.report(make("m"))
        await meter.settle()
        assert await stored(run.task_id) == {"m": {"requests": 1}}

    async def test_of_a_run_whose_task_was_removed_names_nobody(self) -> None:
        run = await run_in_thread(held)
        await run_in_thread(lambda: Task.objects.filter(pk=run.task).delete())
        meter = Meter(run)
        meter.report(make("m"))
        await meter.settle()
        row = await run_in_thread(Usage.objects.get)
        assert (row.task, row.agent, row.requests) == (run.task, run.scope.agent, 1)
        assert {row.owner, row.caller, row.task_id, row.context_id} == {""}


def make(model: str) -> UsageReport:
    """A report of one request."""
    made = make_report(model, None, "USD", requests=1)
    assert made
    return made


class TestAfterACrash:
    async def test_all_calls_are_counted_and_a_replayed_step_reports_nothing(self) -> None:
        calls: list[str] = []

        async def run(turn: Turn) -> str:
            async def call(name: str) -> str:
                calls.append(name)
                await turn.usage(model=name, input_tokens=10)
                if turn.attempt == 1 and name == "lost":
                    await asyncio.Event().wait()  # the answer came, and the step is not kept
                return name

            async def nested() -> str:
                return str(await turn.step("inner", call, "inner"))

            await turn.step("first", call, "first")
            await turn.step("outer", nested)
            await turn.usage(model="outside", input_tokens=1)
            return str(await turn.step("lost", call, "lost"))

        with playing(run) as agent:
            alice = Client(agent)
            task = await alice.begin()
            await until(lambda: calls == ["first", "inner", "lost"])
            await run_in_thread(take_away, task.id)
            await until(lambda: client_state(alice, task.id, "completed"))
        assert calls == ["first", "inner", "lost", "lost"]
        assert await stored(task.id) == {
            "first": {"requests": 1, "inputTokens": 10},
            "inner": {"requests": 1, "inputTokens": 10},
            "lost": {"requests": 2, "inputTokens": 20},
            "outside": {"requests": 2, "inputTokens": 2},
        }
        steps = await run_in_thread(lambda: sorted(Usage.objects.values_list("step", "attempt")))
        assert steps == [("", 1), ("", 2), ("first", 1), ("inner", 1), ("lost", 1), ("lost", 2)]

    async def test_results_of_steps_that_an_earlier_version_stored_with_their_usage_are_read(
        self,
    ) -> None:
        kept = '{"urn:a2a-host:usage":{"m":{"requests":1}},"result":[7]}'
        assert unwrap(kept) == [7]

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
