"""Agents in processes: all that works in a thread works there, a death is a death of the attempt, and a kill is real."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from django.db.models.functions import Now

from a2a_console.handover.hand_over import hand_over
from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, Turn, file, link, registry
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conversation_changes import ConversationChanges, ListChange
from a2a_tasks.execution import processes
from a2a_tasks.execution.pipe import receive
from a2a_tasks.execution.processes import _popen
from a2a_tasks.models import (
    PARKED,
    BudgetAction,
    ConversationItem,
    ConversationMemory,
    Run,
    RunStatus,
    Step,
    StoredFile,
    Task,
    Usage,
)
from a2a_tasks.protocol import values
from a2a_tasks.protocol.operators import HANDOVER
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import budgets
from a2a_tasks.store.append import append
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import RunEnd
from tests.integration.execution.process_agents.agents import Careful, Script
from tests.support.agents_under_test import playing
from tests.support.budgets import limited
from tests.support.execution.host import Client, due, hosting, message_of, runner, status_is
from tests.support.execution.waiting import until
from tests.support.mcp_peer import serving
from tests.support.rows import rows
from tests.support.store.world import Pen, everything, held, status
from tests.support.thorough import thorough

#: What happens in processes is the same on both databases, and to start them takes its time.
pytestmark = [pytest.mark.django_db, pytest.mark.backend("sqlite")]


@pytest.fixture(autouse=True)
def local(settings: Any, agent_processes: None) -> None:
    """Let runs be this process's own; its processes know the scripts, and are given up soon."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    settings.A2A_BEAT_SECONDS = 0.1
    settings.A2A_LEASE_SECONDS = 2.0
    settings.A2A_STOP_SECONDS = 1.6
    settings.A2A_AGENT_PROCESSES = 1


def found(cls: type[Agent]) -> Agent:
    """The agent of a class, as this process hosts it."""
    registry.register(cls)
    agent = registry.find_hosted(cls.slug)
    assert agent is not None
    return agent


@pytest.fixture(autouse=True)
def agents() -> Iterator[None]:
    """Host the scripts for as long as a test lasts."""
    for cls in (Script, Careful):
        found(cls)
    yield
    for cls in (Script, Careful):
        registry._found.pop(cls.slug)


@pytest.fixture
async def script() -> AsyncIterator[Client]:
    """A client of the agent in a process."""
    async with hosting():
        yield Client(found(Script))


def answered(task: values.Task) -> str:
    """The parts of its only artifact, joined."""
    (artifact,) = task.artifacts or []
    return "".join(part["text"] for part in msgspec.json.decode(artifact)["parts"])


def text_of(task: values.Task) -> str:
    """The message in the status."""
    return bytes(task.status.message or b"").decode()


async def at_work(client: Client, text: str) -> tuple[str, int]:
    """Begin a script; its task, and the pid it says when it is at work."""
    task = await client.begin(text)

    async def pid() -> int:
        said = (await client.get(task.id)).status.message
        return int(msgspec.json.decode(said)["parts"][0]["text"]) if said else 0

    found = await until(pid, 60)
    await until((Path(text.split()[1]) / "begun").exists)
    return task.id, found


def alive(pid: int) -> bool:
    """Is there such a process, and is it no zombie?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def newest() -> Run:
    return await run_in_thread(lambda: Run.objects.latest("pk"))


def traces(place: Path) -> list[str]:
    """What the scripts, and the test, have left."""
    return sorted(path.name for path in place.iterdir() if path.is_file())


async def what_was_handed_over_is_there(script: Client, tmp_path: Path) -> None:
    task = await script.send("secret")
    url = msgspec.json.decode(task.status.message)["metadata"][HANDOVER]["url"]  # type: ignore[arg-type]
    await hand_over(url.rpartition("/")[2], {"token": "seven 7"})

    async def over() -> bool:
        return await script.states(task.id) == "completed"

    await until(over)
    assert answered(await script.get(task.id)) == "7 characters"


async def a_turn_knows_there_what_it_knows_here(script: Client, tmp_path: Path) -> None:
    other = await script.send("silent")
    modes, metadata = ("application/json",), {"a": 1}
    request = script.request("facts", accepted_output_modes=modes, metadata=metadata)
    message = values.replace(request.message, reference_task_ids=(other.id,))
    request = dataclasses.replace(request, message=message)
    task = await TABLE["SendMessage"](request, script.call(headers={"x-user-id": "7"}))
    assert isinstance(task, values.Task)
    (artifact,) = task.artifacts or []
    assert msgspec.json.decode(artifact)["parts"][0]["data"] == {
        "text": "facts",
        "caller": "user:alice",
        "attempt": 1,
        "modes": ["application/json"],
        "metadata": {"a": 1},
        "extensions": [],
        "user": "7",
        "history": ["facts"],
        "references": [other.id],
        "task": None,
        "cancelled": False,
        "ids": [True, True],
        "users": 0,
    }


async def files_are_read_fetched_and_kept_by_the_runner(script: Client, tmp_path: Path) -> None:
    large = bytes(100_000)
    parts = (file(large, "a", "x/y"), file(b"abc", "b", "x/y"), link("https://10.0.0.1/"))
    request = script.request("files")
    message = values.replace(request.message, parts=(*request.message.parts, *parts))
    task = await TABLE["SendMessage"](dataclasses.replace(request, message=message), script.call())
    words, twice = (msgspec.json.decode(text)["parts"] for text in task.artifacts)
    refused = "The URL of the file must not lead to a private or reserved address."
    assert [part["text"] for part in words] == ["100000;", "3;", refused]
    assert "url" in twice[0]
    sizes = await run_in_thread(
        lambda: list(StoredFile.objects.order_by("size").values_list("size"))
    )
    assert sizes == [(100_000,), (200_000,)]


async def memory_comes_back_with_the_next_turn(script: Client, tmp_path: Path) -> None:
    task = await script.send("remember")
    assert "turn 1, 1 messages" in text_of(task)
    task = await script.send("remember", task_id=task.id)
    assert "turn 2, 3 messages" in text_of(task)  # the question is one


async def a_conversation_is_kept_from_task_to_task(script: Client, tmp_path: Path) -> None:
    first = await script.send("converse", context_id="talk")
    assert answered(first) == "[None, None, [], None] {'n': 0} ['converse']"
    second = await script.send("converse now", context_id="talk")
    history = ["converse", answered(first), "converse now"]
    read = b"\xff\x00"
    assert answered(second) == f"[{read!r}, {{'n': 0}}, [0], 0] {{'n': 1}} {history}"
    third = answered(await script.send("converse", context_id="talk"))
    assert third.startswith(f"[{read!r}, {{'n': 1}}, [0, 1], 1]")


async def a_question_is_written_with_the_memory_of_it(script: Client, tmp_path: Path) -> None:
    asked = await script.send("async_converse", context_id="asking")
    assert "question 0" in text_of(asked)
    refused = await script.send("async_converse", context_id="asking")
    assert "Not again" in text_of(refused)
    kept = await run_in_thread(lambda: bytes(ConversationMemory.objects.get(key="count").value))
    assert kept == b"1"
    await script.begin("late", context_id="asking")
    await until(lambda: failed_with(script, "comes too late"))
    assert await count_items("asking") == 1


async def of_two_turns_of_a_conversation_the_second_fails(script: Client, tmp_path: Path) -> None:
    place = tmp_path / "two"
    place.mkdir()
    task = await script.begin(f"overtaken {place}", context_id="two")
    await until((place / "begun").exists, 60)
    scope = OwnerScope("", "user:alice", Script.slug)
    mine = await run_in_thread(held, scope=scope, context_id="two")
    event, row = status(TaskState.COMPLETED)
    change = ConversationChanges([], [ListChange("log", 0, 0, False, ["1"], 1)])
    batch = Pen(mine).batch(event, status=row, end=RunEnd(), conversation=change)
    await run_in_thread(append, batch)
    (place / "go").touch()
    await until(lambda: failed_with(script, "ConversationChanged"))
    assert "Another task of this conversation" in text_of(await script.get(task.id))
    assert await count_items("two") == 1


async def count_items(context: str) -> int:
    """The number of items in a conversation."""
    items = ConversationItem.objects.filter(list__context__public_id=context)
    return await run_in_thread(items.count)


async def failed_with(script: Client, text: str) -> bool:
    """Does the trace of a failed run say this?"""
    runs = Run.objects.filter(status=RunStatus.FAILED, error__contains=text)
    return await run_in_thread(runs.exists)


async def words_come_as_they_are_said_and_none_after_the_last(
    script: Client, tmp_path: Path
) -> None:
    task = await script.begin(f"spoken {tmp_path}")
    await until(lambda: said(script, task.id, "first"), 60)
    (tmp_path / "go").touch()
    await until(lambda: said(script, task.id, "done"))
    assert traces(tmp_path) == ["closed", "go"]
    assert answered(await script.get(task.id)) == "ab"


async def steps_of_an_async_agent_are_kept(script: Client, tmp_path: Path) -> None:
    task = await script.send("async_stepping")
    assert answered(task) == "True slept this turn has a step 'one' already; number them"
    kept = await run_in_thread(lambda: sorted(Step.objects.values_list("name", flat=True)))
    assert kept == ["one", "sleep", "two"]


async def a_long_sleep_parks_the_run_and_frees_the_process(script: Client, tmp_path: Path) -> None:
    for kind in ("resting", "resting_in_a_thread"):
        task = await script.begin(kind)
        await until(newest_is_parked, 60)
        assert answered(await script.send("plain")).isdigit()  # in the only process
        await run_in_thread(pass_an_hour)
        await until(partial(status_is, "completed", task=task.id))
        assert answered(await script.get(task.id)) == "ab1"


def pass_an_hour() -> None:
    """Let all sleeps end. For a thread with a connection."""
    Step.objects.filter(name="sleep").update(result="0.0")
    Run.objects.filter(round__gte=PARKED).update(due_at=Now())


async def newest_is_parked() -> bool:
    """Is the newest run parked?"""
    return (await newest()).is_parked


async def each_question_gets_its_own_answer(script: Client, tmp_path: Path) -> None:
    assert answered(await script.send("impatient")) == "1 2"


async def its_faults_are_those_of_any_agent(script: Client, tmp_path: Path) -> None:
    task = await script.send("telling")
    assert (task.status.state.word, '"Tell the client"' in text_of(task)) == ("failed", True)
    for mistake in ("raising", "leaving", "unspeakable", "unforgettable", "odd", "unprintable"):
        task = await asyncio.wait_for(script.send(mistake), 60)
        assert task.status.state.word == "failed", mistake
        assert '"The agent failed."' in text_of(task)
        run = await newest()
        assert (run.status, run.attempt) == (RunStatus.FAILED, 1)
        if mistake == "raising":
            assert "the password is 12345" in run.error
            assert "in raising" in run.error, "the trace of the process is lost"


async def said(client: Client, task: str, word: str) -> bool:
    return word in await message_of(client, task)


#: What one process does well, one after the other.
STORIES = (
    what_was_handed_over_is_there,
    a_turn_knows_there_what_it_knows_here,
    files_are_read_fetched_and_kept_by_the_runner,
    memory_comes_back_with_the_next_turn,
    a_conversation_is_kept_from_task_to_task,
    a_question_is_written_with_the_memory_of_it,
    of_two_turns_of_a_conversation_the_second_fails,
    words_come_as_they_are_said_and_none_after_the_last,
    steps_of_an_async_agent_are_kept,
    a_long_sleep_parks_the_run_and_frees_the_process,
    each_question_gets_its_own_answer,
    its_faults_are_those_of_any_agent,
)


async def test_an_agent_in_a_process_calls_others(script: Client) -> None:
    async def echo(turn: Turn) -> str:
        return f"billed {turn.text}"

    with playing(echo, slug="billing"):
        both = await script.send("delegating")
        one = await script.send("delegating_from_a_thread")
    assert answered(both) == "billed 7 billed 8 There is no agent nobody."
    assert answered(one) == "billed 7"
    assert await run_in_thread(Task.objects.filter(agent="billing").count) == 3


async def test_agents_that_must_not_act_twice_call_each_other_though_there_is_one_process(
    script: Client,
) -> None:
    careful = Client(found(Careful))
    assert answered(await careful.send("going_down 2")) == "the leaf"
    assert answered(await careful.send("going_down 1")) == "the leaf"


class TestRunning:
    async def test_every_kind_of_run_runs_in_one_process_that_is_used_again(
        self, script: Client
    ) -> None:
        kinds = ["plain", "generator", "coroutine", "async_generator"]
        said = [answered(await script.send(kind)).removeprefix("pid ") for kind in kinds]
        assert len(set(said)) == 1
        assert int(said[0]) != os.getpid()
        assert (await script.send("silent")).status.state.word == "completed"

    async def test_it_calls_other_servers_by_the_guarded_session_as_any_agent_does(
        self, script: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """In one process, which must be started: it has another environment than those that are forked."""

        async def answer(request: web.BaseRequest) -> web.Response:
            return web.Response(text="x" * 10_001 if request.path == "/long" else "from outside")

        # loopback alone
        for name, value in (("ALLOW_HTTP", "1"), ("ALLOW_PRIVATE", "1"), ("BYTES", "10000")):
            monkeypatch.setenv(f"A2A_FETCH_{name}", value)
        monkeypatch.setenv("BANK_TOKEN", "s3cret")
        async with RawTestServer(answer) as server, serving() as peer:
            monkeypatch.setenv("A2A_MCP_SERVERS", str(peer.declare(tmp_path)))
            called = answered(await script.send(f"calling {server.make_url('/')}"))
            swallowed = answered(await script.send(f"swallowing {server.make_url('/long')}"))
            assert answered(await script.send("paying")) == "paid 1"
        assert called.startswith("from outside The URL must not lead to a private")
        assert swallowed == "The answer is longer than 10000 bytes."
        said = answered(await script.send("calling_from_a_thread"))
        assert said.startswith("turn.http is for async agents")
        steps = await run_in_thread(lambda: sorted(Step.objects.values_list("name", flat=True)))
        assert steps == ["mcp bank", "mcp bank pay 1"]

    async def test_what_a_turn_left_at_work_learns_nothing_of_the_next_one(
        self, script: Client
    ) -> None:
        assert answered(await script.send("forgetful")) == "left"
        assert answered(await script.send("successor")) == "nothing"

    @rows("story", STORIES, ids=lambda story: story.__name__)
    async def test_in_one_process_all_goes_as_in_a_thread(
        self, script: Client, tmp_path: Path, story: Callable[[Client, Path], Awaitable[None]]
    ) -> None:
        await story(script, tmp_path)


class TestWhatIsTooLarge:
    """The runner has other runs: it reads no more of a process than an artifact may have, twice at most."""

    @pytest.fixture
    def received(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The bytes of the messages from processes."""
        sizes: list[int] = []

        async def note(*arguments: Any) -> tuple[Any, int]:
            message, size = await receive(*arguments)
            sizes.append(size)
            return message, size

        monkeypatch.setattr(processes, "receive", note)
        return sizes

    @rows("what", ["text", "shared", "file", "step", "memory"])
    async def test_it_fails_its_task_and_never_comes_to_the_runner(
        self, script: Client, received: list[int], what: str
    ) -> None:
        pid = answered(await script.send("plain"))
        task = await script.send(f"large {what}")
        assert task.status.state.word == "failed"
        assert "exceeds 67108864 bytes" in text_of(task)
        assert "A2A_MAX_ARTIFACT_BYTES" in (await newest()).error
        assert max(received) < 1_000_000
        assert answered(await script.send("plain")) == pid  # the process goes on

    @rows("what", ["error", "public"])
    async def test_of_an_exception_both_ends_come(
        self, script: Client, received: list[int], what: str
    ) -> None:
        task = await script.send(f"large {what}")
        assert task.status.state.word == "failed"
        assert max(received) < 1_000_000

    async def test_a_process_that_sends_more_is_killed_before_it_is_read(
        self, script: Client, received: list[int]
    ) -> None:
        pid = answered(await script.send("plain"))
        task = await script.send("unbounded")
        assert task.status.state.word == "failed"
        assert "exceeds 67108864 bytes" in text_of(task)
        await until(lambda: not alive(int(pid)))
        assert max(received) < 1_000_000
        assert answered(await script.send("plain")) != pid

    async def test_what_waits_in_the_runner_is_bounded_and_the_rest_waits_in_the_pipe(
        self, script: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held, late = list[int](), list[int]()
        take, answer = processes.ProcessRun.take, processes.ProcessRun._answer

        def note(run: processes.ProcessRun, message: Any, size: int) -> None:
            take(run, message, size)
            held.append(run._held)

        async def answer_late(run: processes.ProcessRun, ask: Any) -> Any:
            """Let the other messages come, as far as they may."""
            if ask.name == "keep" and not late:
                late.append(ask.number)
                await until(lambda: run._held > processes.ROOM)
                await asyncio.sleep(0.5)
            return await answer(run, ask)

        monkeypatch.setattr(processes.ProcessRun, "take", note)
        monkeypatch.setattr(processes.ProcessRun, "_answer", answer_late)
        assert answered(await script.send("crowding")) == f"{8 * 2 * 1024 * 1024}"
        assert max(held) < processes.ROOM + 3 * 1024 * 1024


class TestPlaces:
    @pytest.mark.parametrize("how", ["well", "badly"])
    async def test_what_models_were_used_for_is_written_at_once(
        self, script: Client, how: str
    ) -> None:
        task = await script.send(f"spending {how}")
        rows = await run_in_thread(
            lambda: list(Usage.objects.filter(task_id=task.id).order_by("pk"))
        )
        found = [(row.attempt, row.step, row.input_tokens) for row in rows]
        assert found == [(1, "call", 10), (1, "", 1), (2, "", 1)]

    async def test_who_finds_no_process_free_waits_in_the_queue_where_other_workers_see_it(
        self, script: Client, tmp_path: Path
    ) -> None:
        first, pid = await at_work(script, f"holding {tmp_path}")
        second = await script.begin("plain")
        assert (await newest()).status == RunStatus.QUEUED
        (tmp_path / "go").touch()
        await until(lambda: completed(script, second.id))
        assert answered(await script.get(second.id)) == str(pid)
        assert (await newest()).attempt == 1
        assert await script.states(first) == "completed"

    async def test_who_is_cancelled_while_waiting_never_begins(
        self, script: Client, tmp_path: Path
    ) -> None:
        _, pid = await at_work(script, f"holding {tmp_path}")
        second = await script.begin(f"killed {tmp_path}")
        await script.cancel(second.id)
        (tmp_path / "go").touch()
        assert answered(await script.send("plain")) == str(pid)
        assert not (tmp_path / "attempt 1").exists()

    async def test_who_holds_the_interpreter_there_keeps_its_lease_here(
        self, script: Client, settings: Any
    ) -> None:
        settings.A2A_LEASE_SECONDS = 1.5
        task = await script.send("holding_the_interpreter")
        assert answered(task) == "attempt 1"


async def completed(client: Client, task: str) -> bool:
    return await client.states(task) == "completed"


class TestDeaths:
    async def test_the_next_attempt_begins_at_once_and_repeats_no_step(
        self, script: Client, tmp_path: Path, settings: Any
    ) -> None:
        settings.A2A_LEASE_SECONDS = 600  # nobody waits for its end
        task = await asyncio.wait_for(script.send(f"stepping {tmp_path}"), 60)
        assert answered(task) == "2"
        assert traces(tmp_path) == ["one of 1"]
        assert (await newest()).attempt == 2

    async def test_a_step_that_waits_for_a_budget_stops_no_other_step(
        self, script: Client, tmp_path: Path
    ) -> None:
        async with limited(1, action=BudgetAction.ASK):
            task = await script.begin(f"side_by_side {tmp_path}")
            asking = budgets.list_asking
            await until(lambda: run_in_thread(lambda: asking().exists()), 60)
            assert (await newest()).status == RunStatus.RUNNING
            (tmp_path / "go").touch()
            await until(lambda: run_in_thread(Run.objects.filter(round=PARKED).exists))
            use = await run_in_thread(asking().get)
            await run_in_thread(budgets.allow, use.pk, Decimal(9))
            await until(lambda: status_is("completed", task=task.id), 60)
        assert traces(tmp_path) == ["go", "slow, 1"]

    async def test_in_the_end_the_task_fails_and_says_why(
        self, script: Client, tmp_path: Path, settings: Any
    ) -> None:
        settings.A2A_MAX_ATTEMPTS = 2
        task = await asyncio.wait_for(script.send(f"killed {tmp_path}"), 60)
        assert task.status.state.word == "failed"
        assert "the agent's process died with signal 9" in text_of(task)
        assert traces(tmp_path) == ["attempt 1", "attempt 2"]
        run = await newest()
        assert (run.status, run.attempt, run.token) == (RunStatus.FAILED, 2, "")
        assert run.error.count("died: the agent's process died with signal 9") == 2

    async def test_who_must_not_act_twice_is_not_called_again(
        self, script: Client, tmp_path: Path
    ) -> None:
        task = await asyncio.wait_for(Client(found(Careful)).send(f"killed {tmp_path}"), 60)
        assert task.status.state.word == "failed"
        assert "does not want to be run again" in text_of(task)
        assert traces(tmp_path) == ["attempt 1"]
        assert "signal 9" in (await newest()).error

    async def test_an_exit_is_a_death_too(self, script: Client, settings: Any) -> None:
        settings.A2A_MAX_ATTEMPTS = 1
        assert "the agent's process ended with code 3" in text_of(await script.send("exiting"))

    async def test_what_it_has_forked_does_not_hide_its_death(
        self, script: Client, settings: Any
    ) -> None:
        settings.A2A_MAX_ATTEMPTS = 1
        task = await script.send("forking")
        assert "died with signal 9" in text_of(task)
        events = await run_in_thread(lambda: everything(Task.objects.get(public_id=task.id).pk))
        (pid,) = {int(word) for word in re.findall(r'"text":"(\d+)"', str(events))}
        await until(lambda: not alive(pid))

    async def test_a_process_that_died_between_two_turns_costs_no_attempt(
        self, script: Client, settings: Any
    ) -> None:
        settings.A2A_MAX_ATTEMPTS = 1
        first = int(answered(await script.send("plain")))
        os.kill(first, signal.SIGKILL)
        second = await script.send("plain")
        assert second.status.state.word == "completed"
        assert int(answered(second)) != first


class TestStopping:
    @rows("kind", ["looking", "waiting", "sleeping"])
    async def test_who_listens_ends_and_its_process_is_used_again(
        self, script: Client, tmp_path: Path, kind: str, settings: Any
    ) -> None:
        settings.A2A_STOP_SECONDS = 60  # it is not killed
        place = tmp_path / kind
        place.mkdir()
        task, pid = await at_work(script, f"{kind} {place}")
        await script.cancel(task)
        await until((place / "ended").exists)
        assert answered(await script.send("plain")) == str(pid)
        assert await script.states(task) == "canceled"

    async def test_who_waits_for_an_answer_is_woken(
        self, script: Client, tmp_path: Path, settings: Any
    ) -> None:
        settings.A2A_STOP_SECONDS = 60  # it is not killed
        task, pid = await at_work(script, f"asking {tmp_path}")
        await script.cancel(task)
        (tmp_path / "go").touch()
        await until((tmp_path / "ended").exists)
        assert answered(await script.send("plain")) == str(pid)

    @pytest.mark.parametrize(
        "kind", ["busy", thorough("async_busy"), thorough("deaf"), "locked", "with_a_child"]
    )
    async def test_who_does_not_end_is_killed_with_all_it_has_started(
        self, script: Client, tmp_path: Path, kind: str
    ) -> None:
        task, pid = await at_work(script, f"{kind} {tmp_path}")
        await script.cancel(task)
        await until(lambda: not alive(pid), 10)
        assert (await script.send("plain")).status.state.word == "completed"
        events = await run_in_thread(lambda: everything(Task.objects.get(public_id=task).pk))
        assert [event.state.word for event in events if event.state][-1] == "canceled"


class TestDraining:
    async def test_a_drain_hands_it_back_and_leaves_no_process(
        self, tmp_path: Path, settings: Any
    ) -> None:
        settings.A2A_STOP_SECONDS = 600  # nothing but the drain kills it
        await due(Script.slug, queue=Script.queue, text=f"holding {tmp_path}")
        async with runner(Script.queue) as made:
            await until(lambda: status_is("working"))
            await until(lambda: [*made._processes._children])
            (child,) = made._processes._children
            await made.drain(0)
            await until(lambda: not alive(child.pid))
            run = await newest()
            assert (run.status, run.attempt, run.token) == (RunStatus.QUEUED, 0, "")
        (tmp_path / "go").touch()
        async with runner(Script.queue):
            await until(lambda: status_is("completed"), 60)


class TestStarting:
    async def test_a_process_that_cannot_start_is_no_endless_wait(
        self, script: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_MAX_ATTEMPTS = 1
        monkeypatch.setenv("A2A_APPS", "there.is.no.such.app")
        task = await script.send("plain")
        assert "the agent's process ended with code 1" in text_of(task)

    def test_a_process_ends_with_its_pipe(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = _popen(theirs.fileno())
        assert process.wait(60) == -signal.SIGKILL
