"""Durable steps of real runs: wherever a process dies, what was kept is not done again, and the log is in order."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Chunk, text
from a2a_tasks.execution import agent_call
from a2a_tasks.execution.journal import StoredJournal
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.threads import Threads
from a2a_tasks.execution.turns import turn_of
from a2a_tasks.models import Run, RunStatus, Step, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import runs, steps
from a2a_tasks.store.db import AGAIN_SECONDS, run_in_thread
from a2a_tasks.store.records import ClaimedRun, LeaseLost, RunEnd
from tests.integration.execution.test_recorder import slow_database
from tests.support.agents_under_test import playing
from tests.support.execution.host import (
    Client,
    due,
    hosting,
    message_of,
    not_carried,
    runner,
    status,
    status_is,
    take_away,
)
from tests.support.execution.waiting import until
from tests.support.store.world import claim, everything, expire, held
from tests.support.thorough import examples

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, leases short enough to wait for, and all sleeps in memory."""
    settings.A2A_PARK_SECONDS = 86_400.0
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    settings.A2A_BEAT_SECONDS = 0.1
    settings.A2A_LEASE_SECONDS = 2.0


class PowerCutError(BaseException):
    """The process is gone."""


class Mortal(StoredJournal):
    """A journal whose process dies just before or just after it keeps a step."""

    def __init__(self, run: ClaimedRun, recorder: Recorder, cut: tuple[int, str]) -> None:
        super().__init__(run, recorder)
        self.cut = cut

    async def keep(self, name: str, result: str) -> None:
        """Keep it, or not."""
        if self.cut == (int(name), "before it is kept"):
            raise PowerCutError
        await super().keep(name, result)
        if self.cut == (int(name), "after it is kept"):
            raise PowerCutError


class Story:
    """An agent of so many steps, and its attempts."""

    def __init__(self, kinds: list[str]) -> None:
        self.kinds = kinds
        self.effects: Counter[int] = Counter()

    def effect(self, number: int, cut: tuple[int, str]) -> int:
        """What must not happen twice."""
        if cut == (number, "before it is done"):
            raise PowerCutError
        self.effects[number] += 1
        return number * self.effects[number]

    async def attempt(self, run: ClaimedRun, cut: tuple[int, str]) -> list[int] | None:
        """Run to the end, or to the power cut; the results."""
        pen = Recorder(run)
        turn = turn_of(run, Mortal(run, pen, cut))
        try:
            results = [await self.step(turn, pen, number, cut) for number in range(len(self.kinds))]
        except PowerCutError:
            return None
        pen.finish(RunEnd())
        await pen.wait_written()
        return results

    async def step(self, turn: Turn, pen: Recorder, number: int, cut: tuple[int, str]) -> Any:
        """Announce a step, and take it in its way."""
        pen.emit(Chunk(artifact_id="said", parts=(text(f"#{number};"),), append=number > 0))
        step = turn.step(str(number), self.effect, number, cut)
        if self.kinds[number] == "thread":
            return await asyncio.to_thread(step.now)
        if self.kinds[number] == "async":
            return await turn.step(str(number), self.async_effect, number, cut)
        return await step

    async def async_effect(self, number: int, cut: tuple[int, str]) -> int:
        """The same, awaited."""
        return self.effect(number, cut)


MOMENTS = ["before it is done", "before it is kept", "after it is kept"]
KINDS = st.lists(st.sampled_from(["sync", "async", "thread"]), min_size=1, max_size=5)


@pytest.mark.django_db(transaction=True)
@given(kinds=KINDS, data=st.data())
@hypothesis(
    max_examples=examples(30, quick=10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_wherever_the_power_fails_a_step_once_kept_is_not_taken_again(
    kinds: list[str], data: st.DataObject
) -> None:
    cuts = data.draw(
        st.lists(st.tuples(st.integers(0, len(kinds) - 1), st.sampled_from(MOMENTS)), max_size=4)
    )
    asyncio.run(lived(kinds, cuts))


async def lived(kinds: list[str], cuts: list[tuple[int, str]]) -> None:
    """One task through all these power cuts; after each the store and the effects agree."""
    story = Story(kinds)
    await run_in_thread(Task.objects.all().delete)
    run = await run_in_thread(held)
    for cut in [*cuts, (-1, "never")]:
        before = await run_in_thread(steps.read_results, run.task, run.input_number)
        counted = dict(story.effects)
        results = await story.attempt(run, cut)
        after = await run_in_thread(steps.read_results, run.task, run.input_number)
        assert before.items() <= after.items()
        assert {n: story.effects[n] for n in map(int, before)} == {
            n: counted[n] for n in map(int, before)
        }, "what was kept was done again"
        said = "".join(event.body for event in await run_in_thread(everything, run.task))
        assert all(f"#{number};" in said for number in after), "said before, but not in the log"
        if results is not None:
            assert results == [int(after[str(n)]) for n in range(len(kinds))]
            return
        run = await run_in_thread(taken_over, run)


def taken_over(run: ClaimedRun) -> ClaimedRun:
    """The next attempt, as soon as the last words of the one before are written or refused."""
    expire(run.key)
    while not runs.reclaim_expired(max_attempts=99):  # the row is the writer's at this moment
        pass
    (taken,) = claim()
    return taken


class TestSteps:
    @pytest.mark.parametrize("synchronous", [False, True], ids=["async", "thread"])
    async def test_a_run_begun_again_takes_the_next_step(self, synchronous: bool) -> None:
        taken: list[str] = []
        asleep = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(name: str) -> str:
            taken.append(name)
            return name

        async def agent(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working("one comes")
            one = await turn.step("one", work, "one")
            if turn.attempt == 1:
                asleep.set()
                await asyncio.Event().wait()
            yield turn.artifact(one, await turn.step("two", work, "two"), name="done")

        def in_thread(turn: Turn) -> Iterator[Any]:
            yield turn.working("one comes")
            one = turn.step("one", work, "one").now()
            if turn.attempt == 1:
                loop.call_soon_threadsafe(asleep.set)
                turn.sleep(3600).now()
            yield turn.artifact(one, turn.step("two", work, "two").now(), name="done")

        with playing(in_thread if synchronous else agent) as played:
            await due(played.slug)
            async with runner():
                await asyncio.wait_for(asleep.wait(), 10)
                await run_in_thread(take_away)
                await until(lambda: status_is("completed"))
        assert taken == ["one", "two"]
        names = await run_in_thread(lambda: set(Step.objects.values_list("name", flat=True)))
        assert names >= {"one", "two"}

    async def test_what_was_said_before_a_step_is_in_the_log_before_it_is_kept(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = await run_in_thread(held)
        pen, logged, real = Recorder(run), list[str](), steps.keep_many

        def watched(results: Any) -> Any:
            logged.append(everything(run.task)[-1].body)
            return real(results)

        monkeypatch.setattr(steps, "keep_many", watched)
        turn = turn_of(run, StoredJournal(run, pen))
        with slow_database(monkeypatch) as (go, there):
            pen.emit(Chunk(artifact_id="a", parts=(text("first"),)))
            await there.wait()
            step = asyncio.ensure_future(awaited(turn.step("one", lambda: 1)))
            for _ in range(10):
                await run_in_thread(everything, run.task)
            assert logged == []
            go.set()
            assert await step == 1
        assert "first" in logged[0]

    async def test_a_fenced_agent_takes_its_step_but_cannot_keep_it(self) -> None:
        run = await run_in_thread(held)
        turn = turn_of(run, StoredJournal(run, Recorder(run)))
        await turn.step("one", lambda: 1)
        again = await run_in_thread(taken_over, run)
        with pytest.raises(LeaseLost):
            await turn.step("two", lambda: 2)
        assert await run_in_thread(steps.read_results, again.task, 1) == {"one": "1"}

    async def test_who_cannot_know_that_it_holds_its_lease_takes_no_step_until_it_does(
        self,
    ) -> None:
        run, held_still, calls = await run_in_thread(held), [True], list[str]()
        journal = StoredJournal(run, Recorder(run), holds=lambda: held_still[0])
        turn = turn_of(run, journal)
        await turn.step("one", calls.append, "one")
        held_still[0] = False  # the process was frozen: others may have taken the second step
        step = asyncio.ensure_future(turn.step("two", calls.append, "two"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(step), 2 * AGAIN_SECONDS)
        assert calls == ["one"]
        held_still[0] = True  # no: the heartbeat has found that nobody took the run
        await asyncio.wait_for(step, 20)
        assert calls == ["one", "two"]

    @pytest.mark.django_db(transaction=True)
    async def test_a_step_given_up_while_it_is_kept_is_found_when_tried_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = await run_in_thread(held)
        turn, calls = turn_of(run, StoredJournal(run, Recorder(run))), list[str]()
        there, go, real = threading.Event(), threading.Event(), steps.keep_many

        def slow(results: Any) -> Any:
            there.set()
            go.wait(10)
            return real(results)

        def work(call: str) -> str:
            calls.append(call)
            return call

        monkeypatch.setattr(steps, "keep_many", slow)
        step = asyncio.ensure_future(awaited(turn.step("one", work, "first")))
        await asyncio.to_thread(there.wait, 10)
        step.cancel()
        await asyncio.wait([step])
        again = asyncio.ensure_future(awaited(turn.step("one", work, "second")))
        await asyncio.sleep(0)
        go.set()
        assert (await again, calls) == ("first", ["first"])

    @pytest.mark.django_db(transaction=True)
    async def test_a_step_given_up_that_cannot_be_kept_is_no_error_of_the_host(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run, loop = await run_in_thread(held), asyncio.get_running_loop()
        turn, lost = turn_of(run, StoredJournal(run, Recorder(run))), list[dict[str, Any]]()
        there, go = threading.Event(), threading.Event()

        def fenced(*_: Any) -> None:
            there.set()
            go.wait(10)
            raise LeaseLost

        monkeypatch.setattr(steps, "keep_many", fenced)
        monkeypatch.setattr(steps, "keep", fenced)
        loop.set_exception_handler(lambda _, context: lost.append(context))
        before = asyncio.all_tasks()
        step = asyncio.ensure_future(awaited(turn.step("one", lambda: 1)))
        await asyncio.to_thread(there.wait, 10)
        step.cancel()
        await asyncio.wait([step])
        go.set()
        await asyncio.wait(
            asyncio.all_tasks() - before or [asyncio.ensure_future(run_in_thread(int))]
        )
        del step, turn
        gc.collect()
        assert lost == []

    @pytest.mark.django_db(transaction=True)
    async def test_a_result_whose_commit_nobody_confirmed_is_looked_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = await run_in_thread(held)
        turn, real = turn_of(run, StoredJournal(run, Recorder(run))), steps.keep_many

        def unconfirmed(results: Any) -> Any:
            monkeypatch.setattr(steps, "keep_many", real)
            real(results)
            raise Overloaded

        monkeypatch.setattr(steps, "keep_many", unconfirmed)
        assert await turn.step("one", lambda: 1) == 1
        assert await run_in_thread(steps.read_results, run.task, 1) == {"one": "1"}

    async def test_a_mistake_with_a_step_fails_the_task(self) -> None:
        async def agent(turn: Turn) -> None:
            await turn.step("odd", object)

        with playing(agent) as played:
            async with hosting():
                task = await Client(played).send()
        assert task.status.state.word == "failed"
        assert "the result of step 'odd'" in (await run_in_thread(Run.objects.get)).error

    @pytest.mark.django_db(transaction=True)
    async def test_as_many_threads_as_there_are_may_take_steps_at_once(self, settings: Any) -> None:
        def agent(turn: Turn) -> str:
            return str(turn.step("one", str.upper, turn.text).now())

        with playing(agent) as played:
            async with hosting():
                client = Client(played)
                texts = [f"t{n}" for n in range(40)]
                async with asyncio.timeout(60):
                    tasks = await asyncio.gather(*map(client.send, texts))
        assert {task.status.state.word for task in tasks} == {"completed"}


async def awaited(step: Any) -> Any:
    """A step as a coroutine."""
    return await step


class TestSleep:
    async def test_a_restart_does_not_begin_the_sleep_anew(self) -> None:
        run = await run_in_thread(held)
        turn = turn_of(run, StoredJournal(run, Recorder(run)))
        sleeping = asyncio.ensure_future(awaited(turn.sleep(3600, name="night")))
        await until(lambda: run_in_thread(Step.objects.exists))
        sleeping.cancel()
        until_ = float((await run_in_thread(Step.objects.get)).result)
        assert 3500 < until_ - await run_in_thread(steps.clock) <= 3600
        await run_in_thread(Step.objects.update, result=str(until_ - 3600))  # the hour has passed
        again = await run_in_thread(taken_over, run)
        async with asyncio.timeout(10):
            await turn_of(again, StoredJournal(again, Recorder(again))).sleep(3600, name="night")

    @pytest.mark.parametrize("synchronous", [False, True], ids=["async", "thread"])
    async def test_a_cancelled_sleeper_is_woken_at_once(self, synchronous: bool) -> None:
        woken = threading.Event()

        async def agent(turn: Turn) -> None:
            try:
                await turn.sleep(3600)
            finally:
                woken.set()

        def in_thread(turn: Turn) -> None:
            try:
                turn.sleep(3600).now()
            finally:
                woken.set()

        with playing(in_thread if synchronous else agent) as played:
            async with hosting():
                client = Client(played)
                task = await client.begin()
                await until(lambda: run_in_thread(Step.objects.exists))
                assert (await client.cancel(task.id)).status.state.word == "canceled"
                assert await asyncio.to_thread(woken.wait, 20)
                await until(not_carried)
        assert await status(task.id) == "canceled"

    async def test_a_sleeper_in_a_thread_does_not_hold_up_a_drain(self) -> None:
        woken = threading.Event()

        def agent(turn: Turn) -> None:
            try:
                turn.sleep(3600).now()
            finally:
                woken.set()

        with playing(agent) as played:
            await due(played.slug)
            async with runner():
                await until(lambda: run_in_thread(Step.objects.exists))
            assert await asyncio.to_thread(woken.wait, 20)
        assert (await run_in_thread(Run.objects.get)).status == RunStatus.QUEUED


class TestAfterCrash:
    async def crashed(self, policy: str, calls: list[int]) -> Run:
        """The row of a run whose process died once, when its task has ended."""
        begun = asyncio.Event()

        async def agent(turn: Turn) -> AsyncIterator[Any]:
            calls.append(turn.attempt)
            yield "acting"
            if len(calls) == 1:
                begun.set()
                await asyncio.Event().wait()

        with playing(agent, after_crash=policy) as played:
            await due(played.slug)
            async with runner():
                await asyncio.wait_for(begun.wait(), 10)
                await until(lambda: status_is("working"))
                await run_in_thread(take_away)
                await until(lambda: status_is("completed", "failed"))
        return await run_in_thread(Run.objects.get)

    async def test_by_default_it_runs_again(self) -> None:
        calls: list[int] = []
        run = await self.crashed("resume", calls)
        assert (calls, run.status) == ([1, 2], RunStatus.ENDED)
        assert run.error.startswith("Attempt 1 on ")

    async def test_who_must_not_act_twice_fails_where_the_client_sees_it(self) -> None:
        calls: list[int] = []
        run = await self.crashed("fail", calls)
        assert (calls, run.status) == ([1], RunStatus.FAILED)
        assert "Attempt 1 on " in run.error
        task = await run_in_thread(Task.objects.get)
        assert "The process carrying this task died" in task.status_message
        assert "does not want to be run again" in task.status_message
        events = await run_in_thread(everything, task.pk)
        assert any("acting" in event.body for event in events), "what it said stays"

    async def test_a_deploy_in_the_middle_of_a_run_fails_its_task_too(self) -> None:
        calls: list[int] = []

        async def agent(turn: Turn) -> AsyncIterator[Any]:
            calls.append(turn.attempt)
            yield turn.working()
            await asyncio.Event().wait()

        with playing(agent, after_crash="fail") as played:
            await due(played.slug)
            async with runner():
                await until(lambda: status_is("working"))
            async with runner():
                await until(lambda: status_is("completed", "failed"))
        assert (calls, await status()) == ([1], "failed")
        run = await run_in_thread(Run.objects.get)
        assert run.attempt == 2
        assert "Attempt 1 on " in run.error
        assert "was stopped with its process" in run.error

    async def test_a_run_that_a_deploy_finds_waiting_for_a_thread_is_no_attempt(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(agent_call, "_threads", Threads(lambda: 1))
        begun, go_on = threading.Event(), threading.Event()
        calls: list[str] = []

        def agent(turn: Turn) -> str:
            calls.append(turn.text)
            if turn.text == "first":
                begun.set()
                go_on.wait(20)
            return "done"

        with playing(agent, after_crash="fail") as played:
            async with runner():
                await due(played.slug, "task-1", text="first")
                await until(lambda: asyncio.to_thread(begun.wait, 0))
                await due(played.slug, "task-2", text="second")
                await until(
                    lambda: run_in_thread(
                        Run.objects.filter(task__public_id="task-2", attempt=1).exists
                    )
                )
            go_on.set()
            async with runner():
                await until(lambda: status_is("completed", task="task-2"))
        assert calls == ["first", "second"]

    async def test_a_poison_task_says_how_often_and_how_its_processes_died(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What it says cannot be recorded, whoever tries: two attempts, and it is over.

        Another one is made if the second wrote more of the log than the first.
        """
        settings.A2A_MAX_ATTEMPTS = 2
        poison = LookupError("what it says breaks the writer")

        def finish(self: Recorder, end: RunEnd) -> None:
            raise poison

        monkeypatch.setattr(Recorder, "finish", finish)
        with playing(lambda turn: "x") as played:
            async with hosting():
                client = Client(played)
                task = await client.begin()
                await until(lambda: client_failed(client, task.id))
                said = await message_of(client, task.id)
        run = await run_in_thread(Run.objects.get)
        times = run.attempt
        assert times in {2, 3}
        assert f"interrupted {times} times" in said
        assert "breaks the writer" not in said
        assert run.error.startswith(f"The process running the agent died {times} times")
        assert run.error.count("breaks the writer") == times
        assert "Attempt 1 on " in run.error
        assert "Attempt 2 on " in run.error


async def client_failed(client: Client, task: str) -> bool:
    return await client.states(task) == "failed"
