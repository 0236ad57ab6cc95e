"""Budgets stop work: at the message, at every report, and before every step; they refuse it, pause it, or ask an operator."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from a2a_tasks.access import switch_cache
from a2a_tasks.agents import Turn
from a2a_tasks.execution import meter
from a2a_tasks.models import (
    PARKED,
    Budget,
    BudgetAction,
    BudgetShare,
    BudgetUnit,
    BudgetUse,
    BudgetWindow,
    Run,
)
from a2a_tasks.protocol.errors import RateLimited
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import Task
from a2a_tasks.store import budgets
from a2a_tasks.store import db as store_db
from a2a_tasks.store.backend import sessions
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.statements import statements
from tests.integration.execution.outage import locked
from tests.support.agents_under_test import playing
from tests.support.budgets import make_budget
from tests.support.execution.host import Client, not_carried
from tests.support.execution.waiting import until

pytestmark = [
    pytest.mark.quick_on("sqlite"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("local_runs"),
]
#: Calls of models that agents make at most, if nothing stops them.
MANY = 50


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """Nothing is known of budgets of other tests."""
    switch_cache.forget()
    yield
    switch_cache.forget()


@contextlib.contextmanager
def looking_often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time of runs is looked at often."""
    monkeypatch.setattr(meter, "WATCH_SECONDS", 0.05)
    yield


async def use() -> BudgetUse:
    """The only sum."""
    return await run_in_thread(BudgetUse.objects.get)


def said(task: Task) -> str:
    """The text of its status."""
    return write(task.status.message).decode()


class Models:
    """A model that agents call for ever, and how often they did."""

    def __init__(self) -> None:
        self.calls = 0

    async def loop_over_steps(self, turn: Turn) -> str:
        """Each call is a step."""

        async def ask() -> int:
            self.calls += 1
            await turn.usage(model="m", input_tokens=10)
            return self.calls

        for number in range(MANY):
            await turn.step(f"ask {number}", ask)
        return "done"

    async def loop_over_reports(self, turn: Turn) -> str:
        """No call is a step."""
        for _ in range(MANY):
            self.calls += 1
            await turn.usage(model="m", input_tokens=10)
        return "done"

    async def loop_and_catch(self, turn: Turn) -> str:
        """Nothing is learned of exceptions."""
        for number in range(MANY):
            with contextlib.suppress(Exception):
                await turn.step(f"ask {number}", self._ask, turn)
        return "done"

    async def _ask(self, turn: Turn) -> None:
        self.calls += 1
        await turn.usage(model="m")

    async def loop_in_one_step(self, turn: Turn) -> str:
        """All calls are in one step."""
        await turn.step("plan", self.loop_over_reports, turn)
        return "done"

    async def loop_after_a_step(self, turn: Turn) -> str:
        """One step is taken, and the calls are in none."""
        await turn.step("plan", timezone.now().isoformat)
        return await self.loop_over_reports(turn)

    async def loop_side_by_side(self, turn: Turn) -> str:
        """Two loops at once."""
        steps = (
            [turn.step(f"ask {way} {number}", self._ask, turn) for number in range(MANY // 2)]
            for way in "ab"
        )

        async def take(way: Sequence[Awaitable[Any]]) -> None:
            for step in way:
                await step

        await asyncio.gather(*map(take, steps))
        return "done"

    async def loop_without_waiting(self, turn: Turn) -> str:
        """Reports are not awaited; only the model is."""
        for _ in range(MANY):
            self.calls += 1
            turn.usage(model="m")
            await run_in_thread(timezone.now)
            await asyncio.sleep(0.1)
        return "done"

    def loop_in_a_thread(self, turn: Turn) -> str:
        """A synchronous agent."""
        for number in range(MANY):
            turn.step(f"ask {number}", self._ask_now, turn).now()
        return "done"

    def _ask_now(self, turn: Turn) -> None:
        self.calls += 1
        turn.usage(model="m").now()


class TestARunawayLoop:
    @pytest.mark.parametrize(
        ("loop", "calls"),
        [
            (Models.loop_over_steps, 5),
            (Models.loop_over_reports, 6),  # nobody knows before that it calls once more
            (Models.loop_and_catch, 5),
            (Models.loop_in_a_thread, 5),
        ],
        ids=lambda loop: getattr(loop, "__name__", ""),
    )
    async def test_stops_at_the_limit(
        self, loop: Callable[[Models, Turn], Any], calls: int
    ) -> None:
        await make_budget(5)
        models = Models()
        with playing(loop.__get__(models)) as agent:
            task = await Client(agent).send()
        assert task.status.state.word == "failed"
        assert "Nothing is left of the budget 'calls'" in said(task)
        assert models.calls == calls
        assert (await use()).used == calls

    async def test_stops_soon_if_it_waits_for_no_report(self) -> None:
        await make_budget(5)
        models = Models()
        with playing(models.loop_without_waiting) as agent:
            task = await Client(agent).send()
        assert task.status.state.word == "failed"
        assert 5 <= models.calls < MANY

    @pytest.mark.parametrize(("unit", "most"), [("tokens", 30), ("cost", 0.75)])
    async def test_stops_at_a_limit_of_tokens_or_of_money(self, unit: str, most: float) -> None:
        reports = 0

        async def pay(turn: Turn) -> str:
            nonlocal reports
            for _ in range(MANY):
                reports += 1
                await turn.usage(model="m", input_tokens=6, output_tokens=4, cost=0.25)
            return "done"

        await make_budget(most, unit=unit)
        with playing(pay) as agent:
            await Client(agent).send()
        assert reports == 4
        assert Decimal(str(most)) < (await use()).used

    @pytest.mark.django_db(transaction=True)
    async def test_of_many_runs_at_once_overspends_nothing(self) -> None:
        await make_budget(20)
        models = Models()
        with playing(models.loop_over_steps) as agent:
            client = Client(agent)
            sent = (client.send() for _ in range(12))
            ends = await asyncio.gather(*sent, return_exceptions=True)
        late = [end for end in ends if isinstance(end, RateLimited)]  # the others were faster
        tasks = [end for end in ends if isinstance(end, Task)]
        assert len(late) + len(tasks) == 12
        assert {task.status.state.word for task in tasks} == {"failed"}
        assert models.calls == 20
        assert (await use()).used == models.calls

    async def test_of_a_task_costs_no_other_task(self) -> None:
        await make_budget(5, share=BudgetShare.TASK)
        models = Models()
        with playing(models.loop_over_steps) as agent:
            for _ in range(2):
                assert (await Client(agent).send()).status.state.word == "failed"
        assert models.calls == 10


async def test_a_host_without_budgets_asks_the_database_for_none() -> None:
    with playing(Models().loop_over_steps) as agent:
        await Client(agent).send()  # the process reads the budgets once
        with statements() as said:
            await Client(agent).send()
        await until(not_carried)
    assert said
    assert not [text for text in said if "budget" in text.replace("waits_for_budget", "")]


class Answers:
    """An agent that calls a model so often, and then has its answer."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    async def with_steps(self, turn: Turn) -> str:
        """Each call is a step."""

        async def ask() -> None:
            await turn.usage(model="m", input_tokens=10)

        for number in range(self.calls):
            await turn.step(f"ask {number}", ask)
        return "done"

    async def without_steps(self, turn: Turn) -> str:
        """No call is a step."""
        for _ in range(self.calls):
            await turn.usage(model="m", input_tokens=10)
        return "done"

    async def in_one_step(self, turn: Turn) -> str:
        """All calls are in one step."""
        await turn.step("plan", self.without_steps, turn)
        return "done"

    async def unawaited(self, turn: Turn) -> str:
        """Reports are not awaited."""
        for _ in range(self.calls):
            turn.usage(model="m", input_tokens=10)
            await asyncio.sleep(0.05)
        return "done"

    def in_a_thread(self, turn: Turn) -> str:
        """A synchronous agent."""
        for _ in range(self.calls):
            turn.usage(model="m", input_tokens=10).now()
        return "done"


class TestTheExactLimit:
    """A task that uses all of its budget, and no more, completes: only work that begins later is stopped."""

    @pytest.mark.parametrize("action", BudgetAction)
    @pytest.mark.parametrize(
        "agent",
        [
            Answers.with_steps,
            Answers.without_steps,
            Answers.in_one_step,
            Answers.unawaited,
            Answers.in_a_thread,
        ],
        ids=lambda agent: agent.__name__,
    )
    async def test_suffices(self, action: str, agent: Callable[[Answers, Turn], Any]) -> None:
        await make_budget(3, action=action, window=BudgetWindow.MONTH)
        with playing(agent.__get__(Answers(3))) as slug:
            client = Client(slug)
            task = await client.begin()
            await until(lambda: client_has_ended(client, task.id))
            assert await client.states(task.id) == "completed"
        assert (await use()).used == 3
        assert not await run_in_thread(lambda: budgets.list_asking().exists())

    async def test_of_tokens_may_be_passed_by_the_last_call(self) -> None:
        await make_budget(25, unit=BudgetUnit.TOKENS)
        with playing(Answers(3).without_steps) as agent:
            assert (await Client(agent).send()).status.state.word == "completed"

    @pytest.mark.django_db(transaction=True)
    async def test_is_used_by_as_many_tasks_of_one_call_as_it_has_calls(self) -> None:
        await make_budget(4)
        with playing(Answers(1).without_steps) as agent:
            client = Client(agent)
            ends = await asyncio.gather(*(client.send() for _ in range(12)), return_exceptions=True)
        words = [end.status.state.word for end in ends if isinstance(end, Task)]
        assert words.count("completed") == 4
        assert (await use()).used == 4


class TestAMessage:
    async def test_is_refused_until_the_budget_begins_anew(self) -> None:
        await make_budget(0, window=BudgetWindow.DAY)
        with playing(Models().loop_over_steps) as agent, pytest.raises(RateLimited) as refusal:
            await Client(agent).send()
        assert 0 < int(refusal.value.metadata["retry_after"]) <= 24 * 3600
        assert not await run_in_thread(Run.objects.exists)

    async def test_is_refused_for_ever_where_the_budget_never_begins_anew(self) -> None:
        await make_budget(0)
        with playing(Models().loop_over_steps) as agent, pytest.raises(RateLimited) as refusal:
            await Client(agent).send()
        assert refusal.value.metadata["retry_after"] == "3600"  # an operator may allow more

    async def test_of_another_agent_is_accepted(self) -> None:
        await make_budget(0, agent="somebody-else")
        models = Models()
        with playing(models.loop_over_reports) as agent:
            assert (await Client(agent).send()).status.state.word == "completed"


class TestTime:
    async def test_that_is_over_ends_a_run_that_does_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def wait(turn: Turn) -> str:
            await asyncio.Event().wait()
            return "done"

        await make_budget(0.2, unit=BudgetUnit.SECONDS)
        with looking_often(monkeypatch), playing(wait) as agent:
            task = await Client(agent).send()
        assert task.status.state.word == "failed"
        assert (await use()).used >= Decimal("0.2")

    async def test_that_lasts_costs_no_statement_meanwhile(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_POLL_SECONDS = 0.05
        go, begun = asyncio.Event(), list[int]()

        async def wait(turn: Turn) -> str:
            begun.append(1)
            await go.wait()
            return "done"

        await make_budget(3600, unit=BudgetUnit.SECONDS)
        with looking_often(monkeypatch), playing(wait) as agent:
            client = Client(agent)
            tasks = [await client.begin() for _ in range(5)]
            await until(lambda: len(begun) == 5)
            with statements() as heard:
                await until(lambda: len([one for one in heard if "waited" in one]) > 10)
            go.set()
            for task in tasks:
                await until(functools.partial(client_is, client, task.id, "completed"))
        of_budgets = [text for text in heard if "a2a_tasks_budget" in text and "waited" not in text]
        assert not of_budgets

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_during_an_outage_is_counted_later_and_the_run_goes_on(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SHARE_OF_LOCKS", 0.15)
        settings.A2A_DATABASE_SECONDS = 3.0
        refused: list[BaseException] = []
        monkeypatch.setattr(store_db._outage, "warning", refused.append)
        begun, go = asyncio.Event(), asyncio.Event()
        attempts = []

        async def work(turn: Turn) -> str:
            attempts.append(turn.attempt)
            begun.set()
            await go.wait()
            await turn.step("one", timezone.now().isoformat)
            return "done"

        await make_budget(60, unit=BudgetUnit.SECONDS)
        with playing(work) as agent:
            client = Client(agent)
            task = await client.begin()
            await begun.wait()
            async with locked("a2a_tasks_budgetuse"):
                go.set()
                await until(lambda: len(refused) > 2)
            await until(lambda: client_is(client, task.id, "completed"))
        assert attempts == [1]
        counted = BudgetUse.objects.filter(used__gte=1, used__lt=60)
        await until(lambda: run_in_thread(counted.exists))

    async def test_of_a_run_that_ended_is_counted(self) -> None:
        async def answer(turn: Turn) -> str:
            await asyncio.sleep(0.05)
            return "done"

        await make_budget(60, unit=BudgetUnit.SECONDS)
        with playing(answer) as agent:
            assert (await Client(agent).send()).status.state.word == "completed"
        counted = BudgetUse.objects.filter(used__gte=Decimal("0.05"), used__lt=60)
        await until(lambda: run_in_thread(counted.exists))


class TestAnOperator:
    """The run is parked, and holds no slot."""

    async def ask(self, client: Client) -> str:
        """A task whose run is parked, because the budget asks."""
        task = await client.begin()
        await until(lambda: run_in_thread(self.is_parked))
        return task.id

    @staticmethod
    def is_parked() -> bool:
        run = Run.objects.get()
        return run.is_parked and run.waits_for_budget is not None

    async def test_who_allows_more_lets_the_run_go_on_where_it_was(self) -> None:
        await make_budget(3, action=BudgetAction.ASK)
        models = Models()
        with playing(models.loop_over_steps) as agent:
            client = Client(agent)
            task = await self.ask(client)
            assert models.calls == 3
            assert "Nothing is left of the budget 'calls'" in said(await client.get(task))
            asked = await use()
            assert asked.asked_at is not None
            await run_in_thread(budgets.allow, asked.pk, Decimal(2))
            await until(lambda: run_in_thread(lambda: budgets.list_asking().exists()))
            assert models.calls == 5
            await run_in_thread(budgets.allow, asked.pk, Decimal(1000))
            await until(lambda: client_is(client, task, "completed"))
        assert models.calls == MANY

    async def test_who_refuses_ends_the_task(self) -> None:
        await make_budget(3, action=BudgetAction.ASK)
        models = Models()
        with playing(models.loop_over_steps) as agent:
            client = Client(agent)
            task = await self.ask(client)
            await run_in_thread(budgets.refuse, (await use()).pk)
            await until(lambda: client_is(client, task, "failed"))
            with pytest.raises(RateLimited):
                await client.send()
        assert models.calls == 3

    async def test_who_cancels_the_task_needs_not_decide(self) -> None:
        await make_budget(3, action=BudgetAction.ASK)
        with playing(Models().loop_over_steps) as agent:
            client = Client(agent)
            task = await self.ask(client)
            assert (await client.cancel(task)).status.state.word == "canceled"


class TestAWait:
    """The agent stops at the limit, or after one more call, and goes on once there is room."""

    @pytest.mark.parametrize(
        "loop",
        [
            Models.loop_over_steps,
            Models.loop_over_reports,
            Models.loop_in_one_step,
            Models.loop_after_a_step,
            Models.loop_side_by_side,
            Models.loop_in_a_thread,
        ],
        ids=lambda loop: loop.__name__,
    )
    async def test_holds_every_loop_at_the_limit(self, loop: Callable[[Models, Turn], Any]) -> None:
        await make_budget(3, action=BudgetAction.ASK)
        models = Models()
        with playing(loop.__get__(models)) as agent:
            client = Client(agent)
            task = await client.begin()
            await until(lambda: run_in_thread(lambda: budgets.list_asking().exists()))
            await until(lambda: client_says(client, task.id, "The work waits"))
            assert 3 <= models.calls <= 4
            await run_in_thread(budgets.allow, (await use()).pk, Decimal(1000))
            await until(lambda: client_is(client, task.id, "completed"))
        assert models.calls == MANY
        assert (await use()).used == MANY

    async def test_before_the_agent_begins_holds_no_slot_also_if_it_must_not_act_twice(
        self,
    ) -> None:
        budget = await make_budget(3, action=BudgetAction.ASK)
        await run_in_thread(
            BudgetUse.objects.create, budget=budget, since=budgets.BEGINNING, used=Decimal(3)
        )
        models = Models()
        with playing(models.loop_over_reports, after_crash="fail") as agent:
            client = Client(agent)
            task = await client.begin()
            await until(lambda: run_in_thread(TestAnOperator.is_parked))
            assert models.calls == 0
            await run_in_thread(budgets.allow, (await use()).pk, Decimal(1000))
            await until(lambda: client_is(client, task.id, "completed"))

    async def test_of_an_answer_holds_no_slot(self) -> None:
        async def ask(turn: Turn) -> Any:
            await turn.usage(model="m")
            yield turn.complete("done") if len(await turn.history) > 1 else turn.ask("Which?")

        with playing(ask) as agent:
            client = Client(agent)
            task = await client.send()
            assert task.status.state.word == "input-required"
            budget = await make_budget(3, action=BudgetAction.ASK)
            await run_in_thread(
                BudgetUse.objects.create, budget=budget, since=budgets.BEGINNING, used=Decimal(3)
            )
            await client.begin(task_id=task.id)
            waiting = Run.objects.filter(round=PARKED, waits_for_budget__isnull=False)
            await until(lambda: run_in_thread(waiting.exists), 10)
            assert "The work waits" in said(await client.get(task.id))
            await run_in_thread(budgets.allow, (await use()).pk, Decimal(1000))
            await until(lambda: client_is(client, task.id, "completed"))

    async def test_uses_up_no_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def work(turn: Turn) -> str:
            await asyncio.sleep(0.2)
            for _ in range(2):  # the first one may be the last
                await turn.usage(model="m")
            return "done"

        await make_budget(0.1, unit=BudgetUnit.SECONDS, action=BudgetAction.ASK)
        with looking_often(monkeypatch), playing(work) as agent:
            client = Client(agent)
            task = await client.begin()
            await until(lambda: client_says(client, task.id, "The work waits"))
            used = (await use()).used
            for _ in range(10):
                await asyncio.sleep(meter.WATCH_SECONDS)
            assert (await use()).used == used
            await run_in_thread(budgets.allow, (await use()).pk, Decimal(60))
            await until(lambda: client_is(client, task.id, "completed"))


class TestAPause:
    async def test_lasts_until_the_budget_begins_anew(self) -> None:
        await make_budget(3, action=BudgetAction.PAUSE, window=BudgetWindow.MONTH)
        models = Models()
        with playing(models.loop_over_steps) as agent:
            client = Client(agent)
            task = await client.begin()
            await until(lambda: run_in_thread(TestAnOperator.is_parked))
            run = await run_in_thread(Run.objects.get)
            assert run.due_at > timezone.now()
            assert (run.due_at.day, run.due_at.hour) == (1, 0)
            assert (await use()).asked_at is None
            # The operator gives the budget more room.
            budget = await run_in_thread(Budget.objects.get)
            budget.limit = Decimal(10**6)
            await run_in_thread(budgets.save, budget)
            await run_in_thread(switch_cache.refresh)
            await until(lambda: client_is(client, task.id, "completed"))
        assert models.calls == MANY

    async def test_of_an_agent_without_steps_repeats_nothing(self) -> None:
        budget = await make_budget(3, action=BudgetAction.PAUSE, window=BudgetWindow.MONTH)
        models = Models()
        with playing(models.loop_over_reports) as agent:
            client = Client(agent)
            task = await client.begin()
            await until(lambda: run_in_thread(BudgetUse.objects.filter(used__gte=3).exists))
            await until(lambda: client_says(client, task.id, "The work waits"))
            budget.limit = Decimal(10**6)
            await run_in_thread(budgets.save, budget)
            await run_in_thread(switch_cache.refresh)
            await until(lambda: client_is(client, task.id, "completed"))
        assert models.calls == MANY


async def client_is(client: Client, task: str, state: str) -> bool:
    """Whether the task has this state."""
    return await client.states(task) == state


async def client_has_ended(client: Client, task: str) -> bool:
    """Whether the task has ended, or an operator is asked about it."""
    asked = await run_in_thread(lambda: budgets.list_asking().exists())
    return asked or await client.states(task) in {state.word for state in TERMINAL}


async def client_says(client: Client, task: str, text: str) -> bool:
    """Whether the status of the task says so."""
    return text in said(await client.get(task))
