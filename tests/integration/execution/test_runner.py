"""The runner: it carries what is due, keeps its leases, stops what is cancelled, and lets no agent hurt another."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.utils import timezone

from a2a_tasks.agents import Agent, AgentError, Part, Turn, data
from a2a_tasks.caller import OwnerScope
from a2a_tasks.execution import dispatch, leases, slots
from a2a_tasks.execution.runner import Runner
from a2a_tasks.models import Artifact, Message, Run, RunStatus, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import cancel, event_log, runs, writability
from a2a_tasks.store import db as store_db
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import WantedRuns
from a2a_tasks.store.tasks import find
from tests.integration.execution.outage import locked
from tests.integration.store.test_writability import ALL, as_role
from tests.support.agents_under_test import playing, until_stopped
from tests.support.execution.host import (
    Client,
    client_state,
    due,
    ended,
    hosting,
    message_of,
    not_carried,
    runner,
    status,
    status_is,
    take_away,
)
from tests.support.execution.waiting import until
from tests.support.spans import Spans
from tests.support.store.poison import POISON, poisonous
from tests.support.store.world import everything, expire, held

pytestmark = pytest.mark.django_db
#: The attribute of the span of an attempt whose output did not count.
FENCED = "a2a_host.fenced"
#: Characters of a large message, and a text that makes one: messages of these tests have theirs twice.
LARGE = 100_000
LONG = "x" * (LARGE // 2)


@pytest.fixture
def rights() -> Iterator[Callable[[str], None]]:
    """A function that changes the rights of this host's role."""
    with as_role(*ALL) as change:
        yield change
    connection.close()  # it was ended


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, and leases short enough to wait for."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    settings.A2A_BEAT_SECONDS = 0.1
    settings.A2A_LEASE_SECONDS = 2.0


async def hanging_once(begun: list[int], turn: Turn) -> str:
    """An agent that hangs in its first attempt; it notes its attempts."""
    begun.append(turn.attempt)
    if len(begun) == 1:
        await asyncio.Event().wait()
    return "x"


@contextlib.contextmanager
def waiting() -> Iterator[tuple[Agent, list[str], asyncio.Event]]:
    """Host an agent whose turns wait for the event; the list has the tasks that are at work."""
    go, at_work = asyncio.Event(), list[str]()

    async def run(turn: Turn) -> str:
        at_work.append(turn.task_id)
        await go.wait()
        return "x"

    with playing(run) as agent:
        yield agent, at_work, go


class TestRunning:
    async def test_a_run_that_was_accepted_here_is_carried_at_once(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[str]:
            yield turn.text.upper()

        with playing(run) as agent:
            async with hosting():
                task = await Client(agent).send("loud")
        assert task.status.state.word == "completed"
        assert '"LOUD"' in str([bytes(text) for text in task.artifacts or ()])

    async def test_a_run_that_waits_is_found_without_a_hint(self) -> None:
        with playing(lambda turn: "x") as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: status_is("completed"))
            run = await run_in_thread(Run.objects.get)
            assert (run.status, run.attempt) == (RunStatus.ENDED, 1)

    async def test_every_attempt_has_the_headers_that_the_agent_names(self) -> None:
        found: list[tuple[int, dict[str, str]]] = []

        async def run(turn: Turn) -> str:
            found.append((turn.attempt, dict(turn.headers)))
            if turn.attempt == 1:
                await asyncio.Event().wait()
            return "x"

        with playing(run, forwarded_headers=["X-User-Id", "x-team"]) as agent:
            async with hosting():
                client = Client(agent)
                client.circumstances = {"headers": {"x-user-id": "7", "authorization": "Bearer x"}}
                task = await client.begin()
                await until(lambda: len(found) == 1)
                await run_in_thread(take_away)
                await until(lambda: status_is("completed", task=task.id))
            stored = (await run_in_thread(Run.objects.get)).request
        assert found == [(1, {"x-user-id": "7"}), (2, {"x-user-id": "7"})]
        assert "Bearer" not in stored

    async def test_messages_to_one_task_are_answered_one_after_the_other(self) -> None:
        at_work, most, order = 0, 0, []
        go = asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            order.append(turn.text)
            yield turn.working()
            await go.wait()
            at_work -= 1
            yield turn.ask("more?")

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin("first")
                await until(lambda: order == ["first"])
                await client.begin("second", task_id=task.id)
                await client.begin("third", task_id=task.id)
                go.set()
                await until(lambda: order == ["first", "second", "third"])
                await until(lambda: at_work == 0)
        assert most == 1

    async def test_memory_and_history_come_with_the_next_turn(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            turn.memory["turns"] = turn.memory.get("turns", 0) + 1
            if turn.memory["turns"] < 3:
                yield turn.ask("more?")
            else:
                history = await turn.history
                yield turn.complete(" ".join(message.parts[0].text or "" for message in history))

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("one")
                await client.send("two", task_id=task.id)
                task = await client.send("three", task_id=task.id)
        assert b"one more? two more? three" in bytes(task.status.message or b"")

    async def test_an_agent_that_cleans_up_after_its_last_word_is_done(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            try:
                yield turn.complete("done")
            finally:
                for _ in range(10):
                    await asyncio.sleep(0)

        with playing(run) as agent:
            async with hosting():
                task = await asyncio.wait_for(Client(agent).send(), 20)
        assert task.status.state.word == "completed"

    async def test_no_more_than_its_slots_are_carried(self) -> None:
        go, at_work, most = asyncio.Event(), 0, 0

        async def run(turn: Turn) -> str:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            await go.wait()
            at_work -= 1
            return "x"

        with playing(run) as agent:
            for n in range(7):
                await due(agent.slug, f"task-{n}")
            async with runner(slots=3) as made:
                await until(lambda: at_work == 3)
                assert made.preclaim("agents") is None, "no room for what is accepted here"
                await asyncio.sleep(0)
                assert len(made._active) == 3
                go.set()
                await until(
                    lambda: run_in_thread(
                        lambda: Task.objects.filter(state="TASK_STATE_COMPLETED").count() == 7
                    )
                )
        assert most == 3

    async def test_no_more_runs_of_synchronous_agents_are_carried_than_there_are_threads(
        self, settings: Any
    ) -> None:
        settings.A2A_AGENT_THREADS = 2
        go, spoken = threading.Event(), asyncio.Event()

        def waits(turn: Turn) -> str:
            go.wait(30)
            return "x"

        async def speaks(turn: Turn) -> str:
            spoken.set()
            return "y"

        with playing(waits) as agent, playing(speaks) as other:
            for n in range(6):
                await due(agent.slug, f"task-{n}")
            async with runner() as made, runner() as second:
                try:
                    await until(lambda: made.runs_in_process + second.runs_in_process == 4)
                    assert (made.runs_in_process, second.runs_in_process) == (2, 2)
                    assert await run_in_thread(runs.count_waiting, "agents", 9) == 2
                    assert made.preclaim("agents", agent=agent) is None
                    assert made.preclaim("agents", agent=other) is not None
                    await due(other.slug, "task-other")
                    await asyncio.wait_for(spoken.wait(), 20)
                finally:
                    go.set()
                await until(
                    lambda: run_in_thread(
                        lambda: Task.objects.filter(state="TASK_STATE_COMPLETED").count() == 7
                    )
                )

    async def test_what_is_accepted_here_waits_behind_those_who_wait(self) -> None:
        go = asyncio.Event()

        async def run(turn: Turn) -> str:
            await go.wait()
            return "x"

        with playing(run) as agent:
            async with runner(slots=2) as made:
                for n in range(3):
                    await due(agent.slug, f"task-{n}")
                await until(lambda: made._behind)
                (first, _) = made._active.values()
                made._forget(first)  # a slot is free, and the one who waits has not got it yet
                assert made.preclaim("agents") is None
                await until(lambda: made.runs_in_process == 2)
                go.set()
                await until(lambda: not made._behind)
                assert made.preclaim("agents") is not None

    async def test_a_share_has_no_more_slots_than_it_may(self, settings: Any) -> None:
        settings.A2A_RUN_SLOTS_PER_TENANT = 2
        with waiting() as (agent, at_work, go):
            for n in range(4):
                await due(agent.slug, f"a-{n}", quota_key="a")
            await due(agent.slug, "b-0", quota_key="b")
            async with runner(slots=10) as made:
                await until(lambda: len(at_work) == 3)
                assert sorted(at_work) == ["a-0", "a-1", "b-0"]
                assert made.preclaim("agents", "a") is None
                assert made.preclaim("agents", "b") is not None
                go.set()
                await until(lambda: len(at_work) == 5)

    async def test_large_messages_have_bytes_as_they_have_slots_and_small_ones_run_beside(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(slots, "RUN_BYTES", 10 * LARGE)
        with waiting() as (agent, at_work, go):
            for n in range(15):
                await due(agent.slug, f"a-{n}", quota_key="a", text=LONG)
            async with runner(slots=100) as made:
                await until(lambda: len(at_work) == 9)
                for n in range(5):
                    await due(agent.slug, f"b-{n}", quota_key="b")
                await until(lambda: len(at_work) == 14)
                assert made.runs_in_process == 9 + 5
                assert made.preclaim("agents", "a") is None
                go.set()
                await until(lambda: len(at_work) == 20)

    async def test_what_is_being_accepted_has_its_slot_and_bytes_already(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(slots, "RUN_BYTES", 2 * LARGE)
        async with runner(slots=3) as made:
            await asyncio.wait_for(made.ready.wait(), 20)
            for size, count in ((0, 3), (LARGE, 2)):
                keys = ["a", "b", "c", "d"]
                leases = [made.preclaim("agents", key, size=size) for key in keys]
                held = [lease for lease in leases if lease]
                assert len(held) == count
                for lease in held:
                    made.give_back(lease)
            assert (made._slots.room, made._slots._left) == (3, 2 * LARGE)

    async def test_a_process_without_bytes_takes_nothing_until_a_run_ends(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(slots, "RUN_BYTES", LARGE)
        go = asyncio.Event()

        async def run(turn: Turn) -> str:
            if turn.task_id == "large":
                await go.wait()
            return "x"

        with playing(run) as agent:
            await due(agent.slug, "large", text=3 * LONG)
            async with runner(slots=100) as made:
                await until(lambda: made.runs_in_process == 1)
                assert not made.has_room
                assert made.preclaim("agents", "b") is None
                await due(agent.slug, "small", quota_key="b")
                go.set()
                await until(lambda: status_is("completed", task="small"))
                await until(lambda: made.has_room)

    async def test_the_bytes_of_a_run_are_given_back_however_it_ends(self, settings: Any) -> None:
        settings.A2A_PARK_SECONDS, stopped = 0.0, asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            match turn.task_id:
                case "fails":
                    raise AgentError("No.")
                case "parks":
                    await turn.sleep(3600)
                case "goes on":
                    async for each in until_stopped(stopped)(turn):
                        yield each
            yield "x"

        with playing(run) as agent:
            for task in ("ends", "fails", "parks", "goes on"):
                await due(agent.slug, task, text=LONG)
            async with runner() as made:
                most = made._slots._left
                await until(lambda: made.runs_in_process == 1)
                await until(
                    lambda: made._slots._left == most - next(iter(made._active.values())).run.size
                )
            assert stopped.is_set(), "it was handed back"
            assert made._slots._left == most
        assert not made._slots._bytes

    async def test_who_comes_next_starts_at_once_beside_a_queue_that_would_fill_every_slot(
        self,
    ) -> None:
        with waiting() as (agent, at_work, go):
            for n in range(15):
                await due(agent.slug, f"a-{n}", quota_key="a")
            async with runner(slots=10) as made:
                await until(lambda: len(at_work) == 9)
                await made.ready.wait()
                await due(agent.slug, "b-0", quota_key="b")
                await until(lambda: at_work[-1] == "b-0")
                assert made.runs_in_process == 10
                go.set()
                await until(lambda: len(at_work) == 16)

    async def test_a_runner_serves_its_queues_only(self) -> None:
        with playing(lambda turn: "x", queue="special") as agent:
            await due(agent.slug, "task-1", queue="special")
            await due(agent.slug, "task-2", queue="other")
            async with runner("special") as made:
                assert made.preclaim("other") is None
                await until(lambda: status_is("completed"))
                assert await status("task-2") == "submitted"


def raising(fault: BaseException) -> Any:
    """Raise, where only an expression may stand."""
    raise fault


class TestFailing:
    """An agent's mistake is its task's failure, at once, and its trace is nobody's but the operator's."""

    async def failed(self, run: Any, **about: Any) -> tuple[str, Run]:
        with playing(run, **about) as agent:
            async with hosting():
                client = Client(agent)
                task = await asyncio.wait_for(client.send(), 10)
                assert task.status.state.word == "failed", task.status
                said = await message_of(client, task.id)
                return said, await run_in_thread(lambda: Run.objects.latest("pk"))

    async def test_what_it_raises_is_not_told(self) -> None:
        async def run(turn: Turn) -> str:
            raise RuntimeError("the password is 12345")

        said, row = await self.failed(run)
        assert "12345" not in said
        assert (row.status, row.token) == (RunStatus.FAILED, "")
        assert "the password is 12345" in row.error

    async def test_what_it_raises_is_told_where_the_client_is_the_author(
        self, settings: Any
    ) -> None:
        settings.DEBUG = True

        async def run(turn: Turn) -> str:
            raise RuntimeError("line 7 is wrong")

        said, _ = await self.failed(run)
        assert "The agent failed." in said
        assert "RuntimeError: line 7 is wrong" in said

    @pytest.mark.parametrize(
        ("what", "text"),
        [
            (lambda _: raising(ValueError("line 7\nis wrong")), "ValueError: line 7 is wrong"),
            (lambda _: raising(AgentError("No such city.")), "No such city."),
            (
                lambda _: raising(ValueError("for password=hunter2hunter2 no")),
                "ValueError: for password=[redacted] no",
            ),
            (lambda turn: turn.ask("Which city?"), "Which city?"),
            (lambda turn: turn.complete("Booked."), "Booked."),
            (lambda turn: "Good  news", "Good news"),
            (lambda turn: "x" * 1000, "x" * 200),
            (lambda turn: data({"a": 1}), ""),
        ],
        ids=range(8),
    )
    async def test_the_text_of_its_status_is_the_error_the_question_or_what_was_said(
        self, what: Any, text: str
    ) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield what(turn)

        with playing(run) as agent:
            async with hosting():
                await asyncio.wait_for(Client(agent).send(), 10)
                found = await run_in_thread(lambda: Task.objects.latest("pk").status_text)
                assert found == text

    async def test_more_artifacts_than_a_task_may_have_fail_it(self, settings: Any) -> None:
        settings.A2A_MAX_ARTIFACTS = 2

        def run(turn: Turn) -> Iterator[Any]:
            for name in ("a", "b", "a", "c"):
                yield turn.artifact("x", id=name)

        said, row = await self.failed(run)
        assert "exceeds 2 artifacts" in said
        assert "A2A_MAX_ARTIFACTS" in row.error
        assert await run_in_thread(lambda: Artifact.objects.count()) == 2

    async def test_artifacts_larger_than_a_run_may_make_fail_its_task(self, settings: Any) -> None:
        settings.A2A_MAX_ARTIFACT_BYTES = 10_000

        async def run(turn: Turn) -> AsyncIterator[str]:
            while True:
                yield "ä" * 100

        said, row = await self.failed(run)
        assert "exceeds 10000 bytes of artifacts" in said
        assert "A2A_MAX_ARTIFACT_BYTES" in row.error
        whole = await run_in_thread(lambda: Artifact.objects.get().body)
        assert 5_000 < len(whole.encode()) < 10_000, "what it said before stays"

    @pytest.mark.parametrize("say", ["working", "ask", "reply"])
    async def test_a_message_larger_than_all_artifacts_may_be_fails_its_task(
        self, settings: Any, say: str
    ) -> None:
        settings.A2A_MAX_ARTIFACT_BYTES = 10_000

        def run(turn: Turn) -> Iterator[Any]:
            yield turn.working("x" * 1_000_000)
            yield getattr(turn, say)("ä" * 600_000)

        said, row = await self.failed(run)
        assert "A message of the agent exceeds 1048576 bytes" in said
        assert "A2A_MAX_ARTIFACT_BYTES" in row.error

    async def test_the_text_of_an_agent_error_has_a_bound(self) -> None:
        said, _ = await self.failed(lambda _: raising(AgentError("x" * 2_000_000)))
        assert f'"{"x" * 20_000}"' in said

    async def test_an_agent_error_is_told(self) -> None:
        def run(turn: Turn) -> Iterator[str]:
            yield "x"
            raise AgentError("No such table")

        said, row = await self.failed(run)
        assert '"No such table"' in said
        assert "AgentError" in row.error

    @pytest.mark.parametrize(
        "mistake",
        [
            pytest.param(lambda turn: 42, id="a value that is no content"),
            pytest.param(lambda turn: data(object()), id="data JSON cannot say"),
            pytest.param(lambda turn: turn.working("x", 42), id="a message that is no content"),
            pytest.param(lambda turn: turn.memory.update(a=object()), id="memory JSON cannot say"),
            pytest.param(
                lambda turn: turn.artifact("x", metadata={"a": object()}),
                id="metadata JSON cannot say",
            ),
            pytest.param(lambda turn: turn.memory.update({1: object}), id="memory with odd keys"),
            pytest.param(lambda turn: raising(ValueError("\udcff")), id="a text no database takes"),
            pytest.param(lambda turn: raising(ValueError("a\x00b")), id="a text with NUL"),
            pytest.param(lambda turn: raising(AgentError("\udcff")), id="a told text nobody takes"),
            pytest.param(lambda turn: raising(SystemExit(2)), id="an exit"),
            pytest.param(lambda turn: raising(KeyboardInterrupt()), id="an interrupt"),
            pytest.param(lambda turn: raising(asyncio.CancelledError()), id="a cancellation"),
            pytest.param(lambda turn: raising(GeneratorExit()), id="a generator's exit"),
            pytest.param(lambda turn: turn.reject(data(object())), id="a refusal JSON cannot say"),
            pytest.param(lambda turn: turn.artifact(), id="an artifact without parts"),
            pytest.param(lambda turn: turn.artifact(Part()), id="a part without content"),
            pytest.param(
                lambda turn: turn.artifact(Part(text="x", url="https://x.example")),
                id="a part with two contents",
            ),
        ],
    )
    async def test_a_mistake_fails_the_task_at_once(self, mistake: Any) -> None:
        async def run(turn: Turn) -> Any:
            return mistake(turn)

        said, row = await self.failed(run)
        assert "interrupted" not in said
        assert (row.status, row.attempt) == (RunStatus.FAILED, 1)
        assert row.error.startswith("Traceback")

    @pytest.mark.parametrize("fault", [StopIteration(), SystemExit(2), ValueError("\udcff")])
    async def test_a_synchronous_agents_fault_fails_the_task_at_once(
        self, fault: BaseException
    ) -> None:
        _, row = await self.failed(lambda turn: raising(fault))
        assert (row.status, row.attempt) == (RunStatus.FAILED, 1)

    async def test_one_fault_that_cannot_be_written_fails_nobody_else(self) -> None:
        async def run(turn: Turn) -> str:
            return raising(ValueError("\udcff")) if turn.text == "bad" else "fine"

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                texts = ["good", "bad", "good"] * 10
                tasks = await asyncio.wait_for(asyncio.gather(*map(client.send, texts)), 20)
        expected = ["completed", "failed", "completed"] * 10
        assert [task.status.state.word for task in tasks] == expected

    async def test_words_after_the_end_are_not_heard(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.complete("done")
            yield turn.fail("no")

        with playing(run) as agent:
            async with hosting():
                assert (await Client(agent).send()).status.state.word == "completed"

    async def test_an_agent_that_is_gone_fails_what_was_asked_of_it(self, settings: Any) -> None:
        settings.A2A_ORPHAN_SECONDS = settings.A2A_PRESENCE_SECONDS = 0.0
        await due("no-such-agent")
        async with runner():
            await until(lambda: status_is("failed"))

    async def test_that_nobody_has_an_agent_is_said_when_those_who_have_it_could_say_so(
        self, settings: Any
    ) -> None:
        """After a stop of the whole host the first process to start is alone for a while."""
        settings.A2A_ORPHAN_SECONDS = 3600.0
        await due("no-such-agent")
        long_ago = timezone.now() - datetime.timedelta(hours=2)
        await run_in_thread(lambda: Run.objects.update(due_at=long_ago))
        async with runner() as made:
            await asyncio.wait_for(made.ready.wait(), 10)
            assert (await run_in_thread(Run.objects.get)).attempt == 0
            made._judging_from = 0.0
            await until(lambda: status_is("failed"))

    async def test_an_outage_gives_them_that_time_again(self, settings: Any) -> None:
        settings.A2A_ORPHAN_SECONDS = settings.A2A_PRESENCE_SECONDS = 0.0
        async with runner() as made:
            await asyncio.wait_for(made.ready.wait(), 10)
            settings.A2A_PRESENCE_SECONDS = 3600.0
            made._be_patient(Overloaded())
            settings.A2A_PRESENCE_SECONDS = 0.0
            looked: list[bool] = []
            real = runs.claim

            def claim(wanted: WantedRuns, **more: Any) -> Any:
                looked.append(wanted.orphans)
                return real(wanted, **more)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(runs, "claim", claim)
                await until(lambda: looked)
        assert not any(looked)

    async def test_one_agents_failure_is_not_anothers(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            if turn.text == "bad":
                yield turn.artifact(id="a")
            yield "fine"

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                texts = ["good", "bad"] * 20
                tasks = await asyncio.wait_for(asyncio.gather(*map(client.send, texts)), 20)
        assert [task.status.state.word for task in tasks] == ["completed", "failed"] * 20

    async def test_the_runner_survives_a_database_that_errs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever the look at the table raises, the next look is taken."""
        real, errs = runs.claim, threading.Event()

        def claim(*args: Any, **kwargs: Any) -> Any:
            if not errs.is_set():
                errs.set()
                raise LookupError("once")
            return real(*args, **kwargs)

        monkeypatch.setattr(runs, "claim", claim)
        with playing(lambda turn: "x") as agent:
            async with runner():
                await until(errs.is_set)
                await due(agent.slug)
                await until(lambda: status_is("completed"))

    async def test_runs_whose_claim_came_too_late_are_given_back_and_begun_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, late = runs.claim, threading.Event()

        def claim(*args: Any, **kwargs: Any) -> Any:
            taken = real(*args, **kwargs)
            if taken and not late.is_set():
                late.set()
                return [
                    dataclasses.replace(one, requested_at=one.requested_at - 3600) for one in taken
                ]
            return taken

        monkeypatch.setattr(runs, "claim", claim)
        with playing(lambda turn: "x") as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: status_is("completed"))
        row = await run_in_thread(Run.objects.get)
        assert (late.is_set(), row.attempt, row.deaths) == (True, 1, 0)

    async def test_a_run_that_cannot_be_given_up_keeps_no_other_waiting(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        """One cannot be ended, another has an attempt left, a third is new."""
        settings.A2A_MAX_ATTEMPTS = 2
        tried, real = list[str](), event_log.change_state

        def change_state(task: Task, *args: Any, **kwargs: Any) -> Any:
            tried.append(task.public_id)
            if task.public_id == "bad":
                raise OperationalError("it is too large")
            return real(task, *args, **kwargs)

        monkeypatch.setattr(event_log, "change_state", change_state)
        with playing(lambda turn: "x") as agent:
            bad = await due(agent.slug, "bad", held=True)
            spent = await due(agent.slug, "spent", held=True)
            lost = await due(agent.slug, "lost", held=True)
            await run_in_thread(lambda: Run.objects.update(worker=F("token")))
            for run in (bad, spent):
                await run_in_thread(Run.objects.filter(pk=run.run).update, deaths=1)
            for run in (bad, spent, lost):
                await run_in_thread(expire, run.run)
            async with runner():
                await until(lambda: "bad" in tried)
                await due(agent.slug, "new")
                await until(lambda: status_is("completed", task="new"))
                await until(lambda: status_is("completed", task="lost"))
                await until(lambda: status_is("failed", task="spent"))
                assert await status("bad") == "submitted"
        assert tried.count("bad") == 1, "it rests before it is tried again"

    @pytest.mark.django_db(transaction=True)
    async def test_a_run_whose_word_the_database_always_refuses_fails_and_no_other_waits(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_MAX_ATTEMPTS = 1
        monkeypatch.setattr(store_db, "REFUSED_SECONDS", 0.0)

        async def run(turn: Turn) -> AsyncIterator[str]:
            yield turn.text

        with playing(run) as agent:
            async with poisonous(), runner():
                await due(agent.slug, "bad", text=POISON)
                await due(agent.slug, "good")
                await until(lambda: status_is("completed", task="good"))
                await until(lambda: status_is("failed", task="bad"))
        row = await run_in_thread(Run.objects.get, task__public_id="bad")
        assert "Refused: the database refused it" in row.error


class TestStopping:
    async def test_an_async_agent_is_stopped_by_a_hint(self, settings: Any) -> None:
        # Nobody would see it by looking, while the test waits.
        settings.A2A_POLL_SECONDS = settings.A2A_BEAT_SECONDS = 60.0
        settings.A2A_LEASE_SECONDS = 180.0
        stopped = asyncio.Event()
        with playing(until_stopped(stopped)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: client_state(client, task.id, "working"))
                assert (await client.cancel(task.id)).status.state.word == "canceled"
                await asyncio.wait_for(stopped.wait(), 20)

    async def test_a_synchronous_agent_is_told(self) -> None:
        begun, told = threading.Event(), threading.Event()

        def run(turn: Turn) -> Iterator[str]:
            begun.set()
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                if turn.cancelled:
                    told.set()
                    return
            yield "too late"

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await asyncio.to_thread(begun.wait, 10)
                await client.cancel(task.id)
                assert await asyncio.to_thread(told.wait, 20)
        assert await status(task.id) == "canceled"

    async def test_an_agent_that_will_not_stop_is_heard_by_nobody(self) -> None:
        shrugged, tried = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                shrugged.set()
            for _ in range(100):
                yield "and another thing"
                await asyncio.sleep(0.01)
            tried.set()

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: client_state(client, task.id, "working"))
                await client.cancel(task.id)
                await asyncio.wait_for(shrugged.wait(), 20)
                row = await run_in_thread(Task.objects.get)
                await until(lambda: not_carried())
                events = await run_in_thread(everything, row.pk)
        assert [event.state.word for event in events if event.state][-1] == "canceled"
        assert not any("another thing" in event.body for event in events)
        assert not tried.is_set()

    async def test_the_slot_of_a_stopped_agent_is_free(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            if turn.text == "wait":
                await asyncio.Event().wait()

        with playing(run) as agent:
            first = await due(agent.slug, "task-1", text="wait")
            async with runner(slots=1):
                await until(lambda: status_is("working"))
                await due(agent.slug, "task-2", text="go")
                await run_in_thread(cancel.cancel_by_key, first.task)
                await until(lambda: status_is("completed", task="task-2"))


class TestLeases:
    async def test_a_lost_run_is_rescued_as_its_rescuer_begins_and_not_a_poll_later(
        self, settings: Any
    ) -> None:
        settings.A2A_POLL_SECONDS = 600.0
        lost = await run_in_thread(held)
        await run_in_thread(expire, lost.key)
        async with runner():
            await until(lambda: run_in_thread(lambda: Run.objects.get().token != lost.token))

    @pytest.mark.django_db(transaction=True)
    async def test_heartbeats_keep_the_lease_while_the_loop_is_busy(self) -> None:
        go = asyncio.Event()

        async def run(turn: Turn) -> str:
            await go.wait()
            return "x"

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: client_state(client, task.id, "working"))
                (carried,) = dispatch._runners[asyncio.get_running_loop()]._active.values()
                begun = time.monotonic()
                while carried.extended < begun + 2.5 and time.monotonic() < begun + 60:
                    pass  # for longer than a lease nobody gets the loop: not the poll, not the agents
                assert await run_in_thread(runs.reclaim_expired, max_attempts=3) == 0
                go.set()
                await until(lambda: client_state(client, task.id, "completed"))
                run_ = await run_in_thread(lambda: Run.objects.get(task__public_id=task.id))
        assert run_.attempt == 1

    @pytest.mark.django_db(transaction=True)
    async def test_heartbeats_keep_it_although_their_first_connection_failed_in_any_way(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_LEASE_SECONDS = 600.0  # nothing but a heartbeat changes its end
        failed = threading.Event()

        def run_here(work: Any, *args: Any, **kwargs: Any) -> Any:
            if not failed.is_set():
                failed.set()
                raise OSError("too many open files")
            return store_db.run_here(work, *args, **kwargs)

        monkeypatch.setattr(leases, "run_here", run_here)
        with playing(until_stopped(asyncio.Event())) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: status_is("working"))
                await until(failed.is_set)
                begun = await run_in_thread(Run.objects.get)
                later = Run.objects.filter(lease_until__gt=begun.lease_until)
                await until(lambda: run_in_thread(later.exists), 20)
                assert (await run_in_thread(Run.objects.get)).attempt == 1

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_an_agent_is_stopped_when_its_lease_ends_without_the_database(
        self, settings: Any
    ) -> None:
        """And the grace after it: another process may have its task by then, and cannot tell this one."""
        settings.A2A_LEASE_SECONDS = 0.6
        stopped = asyncio.Event()
        with playing(until_stopped(stopped)) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: status_is("working"))
                async with locked("a2a_tasks_run", 0.1):
                    await asyncio.wait_for(stopped.wait(), 10)

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_what_was_stopped_in_an_outage_is_given_back_after_it_and_did_not_die(
        self, settings: Any
    ) -> None:
        settings.A2A_LEASE_SECONDS = 0.6
        begun: list[int] = []

        with playing(partial(hanging_once, begun)) as agent:
            result = await due(agent.slug)
            async with runner() as made:
                await until(lambda: begun)
                async with locked("a2a_tasks_run", 0.1):
                    await until(lambda: result.run not in made._active)
                    # Its own rescuer waits for a lease only, which a busy machine may need to give the run back.
                    made._resting[result.run] = time.monotonic() + 60
                await until(lambda: status_is("completed"))
        row = await run_in_thread(Run.objects.get)
        assert (begun, row.attempt, row.deaths, row.shared_deaths) == ([1, 1], 1, 0, 0)

    @pytest.mark.django_db(transaction=True)
    async def test_a_claim_whose_answer_is_lost_is_given_back_as_if_nothing_had_begun(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An agent that must not be begun again would fail otherwise, though it never began."""
        claim, answers = runs.claim, [False, True]

        def losing(*args: Any, **kwargs: Any) -> Any:
            taken = claim(*args, **kwargs)
            if taken and not answers.pop(0):
                raise OperationalError("the connection is lost")
            return taken

        monkeypatch.setattr(runs, "claim", losing)
        with playing(lambda _: "x", after_crash="fail") as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: status_is("completed"))
        row = await run_in_thread(Run.objects.get)
        assert (answers, row.attempt, row.deaths, row.error) == ([], 1, 0, "")

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_who_was_cut_off_takes_back_the_death_that_others_counted(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_LEASE_SECONDS = 0.6
        begun: list[int] = []
        taken_back, counted = asyncio.Event(), threading.Event()
        give_back = runs.hand_back

        async def run(turn: Turn) -> str:
            begun.append(turn.attempt)
            await (asyncio.Event() if turn.attempt == 1 else taken_back).wait()
            return "x"

        def after_others(tokens: Any, *, tried: Any) -> None:
            if not counted.is_set():
                expire(result.run)
                assert runs.reclaim_expired(max_attempts=3) == 1
                counted.set()
            give_back(tokens, tried=tried)

        with playing(run) as agent:
            result = await due(agent.slug)
            monkeypatch.setattr(runs, "hand_back", after_others)
            async with runner() as made:
                await until(lambda: begun)
                async with locked("a2a_tasks_run", 0.1):
                    await until(lambda: result.run not in made._active)
                    # Its own rescuer waits for a lease only, which a busy machine may need to give the run back.
                    made._resting[result.run] = time.monotonic() + 60
                await until(lambda: len(begun) == 2 and not made._leases.owed)
                monkeypatch.setattr(runs, "hand_back", give_back)
                taken_back.set()
                await until(lambda: status_is("completed"))
        row = await run_in_thread(Run.objects.get)
        assert (begun, row.attempt, row.deaths) == ([1, 2], 2, 0)

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_what_must_not_be_begun_again_goes_on_through_an_outage(
        self, settings: Any
    ) -> None:
        """Stopped, its task could only fail."""
        settings.A2A_LEASE_SECONDS = 0.6
        begun, go = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> str:
            begun.set()
            await go.wait()
            return "x"

        with playing(run, after_crash="fail") as agent:
            result = await due(agent.slug)
            async with runner() as made:
                await asyncio.wait_for(begun.wait(), 10)
                carried = made._active[result.run]
                async with locked("a2a_tasks_run", 0.1):
                    since = time.monotonic()
                    await until(lambda: carried.is_unknown and time.monotonic() > since + 2)
                go.set()
                await until(lambda: status_is("completed", "failed"))
                assert await status() == "completed"
        assert (await run_in_thread(Run.objects.get)).attempt == 1

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_a_run_whose_row_somebody_holds_goes_on_and_so_do_the_others(
        self, settings: Any
    ) -> None:
        settings.A2A_LEASE_SECONDS, settings.A2A_BEAT_SECONDS = 1.0, 0.2
        go, let_go = asyncio.Event(), threading.Event()

        async def run(turn: Turn) -> str:
            await go.wait()
            return "x"

        def hold(key: int) -> None:
            with transaction.atomic():
                Run.objects.select_for_update().get(pk=key)
                let_go.wait(30)
            connection.close()

        with playing(run) as agent:
            stuck = await due(agent.slug, "task-1")
            other = await due(agent.slug, "task-2")
            async with runner() as made:
                await until(lambda: made.runs_in_process == 2)
                holder = asyncio.create_task(asyncio.to_thread(hold, stuck.run))
                begun = time.monotonic()
                await until(lambda: made._active[other.run].extended > begun + 4)  # four leases
                assert made._active.keys() == {stuck.run, other.run}
                let_go.set()
                await holder
                await until(lambda: made._active[stuck.run].holds())
                go.set()
                for task in ("task-1", "task-2"):
                    await until(partial(status_is, "completed", task=task))
        assert set(
            await run_in_thread(lambda: list(Run.objects.values_list("attempt", flat=True)))
        ) == {1}

    async def test_a_process_does_not_take_its_own_runs_for_lost(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        """Their rows were locked, or the database was away, for longer than a lease."""
        settings.A2A_BEAT_SECONDS = settings.A2A_LEASE_SECONDS = 600.0
        go, looks, real = asyncio.Event(), list[Any](), runs.queue_again

        def queue_again(**asked: Any) -> Any:
            looks.append(real(**asked))
            return looks[-1]

        async def run(turn: Turn) -> str:
            await go.wait()
            return "x"

        monkeypatch.setattr(runs, "queue_again", queue_again)
        with playing(run) as agent:
            result = await due(agent.slug)
            async with runner() as made:
                await until(lambda: made.runs_in_process == 1)
                before = len(looks)  # one that began before the run was claimed knows nothing of it
                await until(lambda: len(looks) > before + 1)
                await run_in_thread(expire, result.run)
                seen = len(looks)
                await until(lambda: len(looks) > seen + 2)
                go.set()
                await until(lambda: status_is("completed"))
        assert (await run_in_thread(Run.objects.get)).attempt == 1

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_a_run_whose_row_was_locked_is_left_alone_until_its_process_could_beat(
        self, settings: Any
    ) -> None:
        settings.A2A_BEAT_SECONDS = 60.0
        locked, let_go = threading.Event(), threading.Event()

        def hold(key: int) -> None:
            with transaction.atomic():
                Run.objects.select_for_update().get(pk=key)
                locked.set()
                let_go.wait(30)
            connection.close()

        result = await due("no-such-agent", held=True)
        await run_in_thread(expire, result.run)
        holder = asyncio.create_task(asyncio.to_thread(hold, result.run))
        await asyncio.to_thread(locked.wait, 10)
        async with runner() as made:
            await until(lambda: result.run in made._locked)
            first = made._locked[result.run]
            await until(lambda: made._locked[result.run] > first)  # from its release on
            let_go.set()
            await holder
            token = (await run_in_thread(Run.objects.get)).token
            assert await run_in_thread(runs.heartbeat, [token]) == {token}
        row = await run_in_thread(Run.objects.get)
        assert (row.attempt, row.shared_deaths, row.deaths) == (1, 0, 0)

    async def test_for_a_lease_after_an_outage_nothing_is_rescued(self, settings: Any) -> None:
        settings.A2A_LEASE_SECONDS = 2.0

        async def run(turn: Turn) -> str:
            return "x"

        with playing(run) as agent:
            result = await due(agent.slug, held=True)
            async with runner() as made:
                await asyncio.wait_for(made.ready.wait(), 10)
                made._be_patient(Overloaded())
                assert made.patient
                await run_in_thread(expire, result.run)
                await until(lambda: status_is("completed"))
                assert not made.patient
        assert (await run_in_thread(Run.objects.get)).deaths == 1

    async def test_a_fenced_agent_is_stopped_though_it_says_nothing(self, spans: Spans) -> None:
        stopped = asyncio.Event()
        with playing(until_stopped(stopped), queue="elsewhere") as agent:
            await due(agent.slug, queue="elsewhere")
            async with runner("elsewhere") as made:
                await until(lambda: status_is("working"))
                made.queues = ["nothing"]  # whoever takes the run over, it is not this process
                await run_in_thread(take_away)
                await asyncio.wait_for(stopped.wait(), 20)
                attempts = functools.partial(spans.named, f"invoke_agent {agent.slug}")
                await until(lambda: any((one.attributes or {}).get(FENCED) for one in attempts()))

    async def test_a_run_whose_process_died_is_finished_by_another(self) -> None:
        attempts: list[int] = []

        async def run(turn: Turn) -> AsyncIterator[Any]:
            attempts.append(turn.attempt)
            yield f"attempt {turn.attempt}"
            if turn.attempt == 1:
                await asyncio.Event().wait()

        with playing(run) as agent:
            result = await due(agent.slug)
            async with runner() as dead:
                await until(lambda: attempts == [1])
                dead._leases.stop()
                dead.queues = []
                await run_in_thread(expire, result.run)
                async with runner():
                    await until(lambda: status_is("completed"))
            task = await run_in_thread(find, OwnerScope("", "user:alice", agent.slug), "task-1")
        assert attempts == [1, 2]
        assert [bytes(text) for text in (task.view.artifacts if task else ()) or ()] == [
            b'{"artifactId":"answer","parts":[{"text":"attempt 2"}]}'
        ], "the second attempt begins its answer anew"

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_what_a_turn_reads_is_waited_for_while_the_database_is_away(self) -> None:
        ready, away = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> str:
            ready.set()
            await away.wait()
            return f"{len(await turn.history)} message, attempt {turn.attempt}"

        with playing(run, after_crash="fail") as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await asyncio.wait_for(ready.wait(), 10)
                await until(lambda: client_state(client, task.id, "working"))
                async with locked("a2a_tasks_message", 0.2):
                    away.set()
                    with pytest.raises(Overloaded):  # the reading has been refused meanwhile
                        await run_in_thread(Message.objects.count)
                await until(lambda: client_state(client, task.id, "completed"))

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_what_a_turn_says_is_written_once_when_a_right_that_was_missing_is_back(
        self, rights: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refused: list[object] = []
        monkeypatch.setattr(store_db._outage, "warning", refused.append)
        monkeypatch.setattr(writability._refusal, "lasts", False)
        go = asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            page = turn.stream("page")
            yield page.write("0")
            await go.wait()
            for number in range(1, 5):
                yield page.write(str(number), last=number == 4)

        with playing(run) as agent:
            result = await due(agent.slug)
            async with runner():
                await until(lambda: status_is("working"))
                rights("revoke insert on a2a_tasks_event from")
                go.set()
                await until(lambda: len(refused) > 2)
                assert await status() == "working"
                rights("grant insert on a2a_tasks_event to")
                await until(lambda: status_is("completed", "failed"))
        assert await status() == "completed"
        events = await run_in_thread(everything, result.task)
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        said = "".join(event.body for event in events)
        assert [said.count(f'"text":"{number}"') for number in range(5)] == [1] * 5
        assert (await run_in_thread(Run.objects.get)).attempt == 1

    async def test_the_dead_are_seen_to_while_the_bell_never_rests(self) -> None:
        async def run(turn: Turn) -> str:
            return turn.text

        with playing(run) as agent:
            async with runner() as made:
                await asyncio.wait_for(made.ready.wait(), 10)
                bell = asyncio.create_task(ringing(made))
                result = await due(agent.slug, held=True)
                await run_in_thread(expire, result.run)
                await until(lambda: status_is("completed"), 10)
                bell.cancel()

    async def test_a_lease_lost_before_says_nothing_about_the_attempt_after_it(self) -> None:
        """The heartbeat asked for the old token, and the answer came when the process had the run again."""
        at_work, go = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> str:
            at_work.set()
            await go.wait()
            return "x"

        with playing(run) as agent:
            result = await due(agent.slug)
            async with runner() as made:
                await asyncio.wait_for(at_work.wait(), 10)
                before = made._active[result.run]
                at_work.clear()
                await run_in_thread(take_away)
                await asyncio.wait_for(at_work.wait(), 10)
                made._on_lease_lost(before)
                go.set()
                await until(lambda: status_is("completed"))
                assert (await run_in_thread(Run.objects.get)).attempt == 2

    async def test_a_run_that_comes_back_to_its_own_process_is_carried_once(self) -> None:
        """Its lease ended while the process was held up, and the process itself took it over."""
        at_work: list[int] = []
        go = asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            at_work.append(turn.attempt)
            try:
                await go.wait()
            finally:
                at_work.remove(turn.attempt)

        with playing(run) as agent:
            result = await due(agent.slug)
            async with runner() as made:
                await until(lambda: at_work == [1])
                await run_in_thread(take_away)
                await until(lambda: at_work == [2])
                assert result.run in made._active, "its heart must beat for the second attempt"
                token = made._active[result.run].run.token
                assert (await run_in_thread(Run.objects.get)).token == token
                go.set()
                await until(lambda: status_is("completed"))


async def ringing(made: Runner) -> None:
    """A host on which something is always due."""
    while True:
        made.wake()
        await asyncio.sleep(0)


class TestDraining:
    async def test_what_ends_in_time_ends_here(self) -> None:
        go = asyncio.Event()

        async def run(turn: Turn) -> str:
            await go.wait()
            return "x"

        with playing(run) as agent:
            await due(agent.slug)
            async with runner() as made:
                await until(lambda: status_is("working"))
                draining = asyncio.ensure_future(made.drain(60))
                await asyncio.sleep(0)
                assert made.preclaim("agents") is None
                go.set()
                await asyncio.wait_for(draining, 20)
                assert await status() == "completed"

    async def test_a_drain_may_be_longer_than_a_lease(self) -> None:
        go = asyncio.Event()

        async def run(turn: Turn) -> str:
            await go.wait()
            return "x"

        with playing(run) as agent:
            await due(agent.slug)
            async with runner() as made:
                await until(lambda: status_is("working"))
                draining = asyncio.ensure_future(made.drain(60))
                held_until = (await run_in_thread(Run.objects.get)).lease_until
                assert held_until is not None
                later = held_until + datetime.timedelta(seconds=2)
                await until(lambda: run_in_thread(Run.objects.filter(lease_until__gt=later).exists))
                go.set()
                await asyncio.wait_for(draining, 10)
        assert await status() == "completed"
        assert (await run_in_thread(Run.objects.get)).attempt == 1

    async def test_the_rest_is_handed_back_and_finished_by_another_runner(self) -> None:
        attempts: list[int] = []

        async def run(turn: Turn) -> AsyncIterator[Any]:
            attempts.append(turn.attempt)
            yield turn.working()
            if len(attempts) == 1:
                await asyncio.Event().wait()
            yield "done"

        with playing(run) as agent:
            await due(agent.slug)
            async with runner() as made:
                await until(lambda: status_is("working"))
                await ended(made)
                row = await run_in_thread(Run.objects.get)
                assert (row.status, row.token, row.attempt) == (RunStatus.QUEUED, "", 0)
            async with runner():
                await until(lambda: status_is("completed"))
        assert attempts == [1, 1], "a run given back was not tried"

    @pytest.mark.django_db(transaction=True)
    async def test_what_a_claim_under_way_brings_is_handed_back(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claimed, go_on = threading.Event(), threading.Event()
        claim = runs.claim

        def slowly(*args: Any, **kwargs: Any) -> Any:
            taken = claim(*args, **kwargs)
            if taken:
                claimed.set()
                assert go_on.wait(10)
            return taken

        async def run(turn: Turn) -> None:
            await asyncio.Event().wait()

        with playing(run) as agent:
            await due(agent.slug)
            monkeypatch.setattr(runs, "claim", slowly)
            monkeypatch.setattr("a2a_tasks.execution.runner.CLAIM_SECONDS", 30.0)
            async with runner() as made:
                assert await asyncio.to_thread(claimed.wait, 10)
                draining = asyncio.ensure_future(made.drain(0.3))
                await asyncio.sleep(0)
                go_on.set()
                await draining
                row = await run_in_thread(Run.objects.get)
        assert (row.status, row.token, row.attempt) == (RunStatus.QUEUED, "", 0)

    async def test_a_drained_runner_claims_nothing_more(self) -> None:
        with playing(lambda turn: "x") as agent:
            async with runner() as made:
                await made.drain(0)
                await due(agent.slug)
                made.wake()
                async with runner("other"):
                    await run_in_thread(Task.objects.get)
                assert await status() == "submitted"
