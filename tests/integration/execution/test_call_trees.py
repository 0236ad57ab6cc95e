"""Trees of tasks: what a cancel, an end, a death or a question of one means for the others."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import functools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from a2a_console.handover.hand_over import hand_over
from a2a_console.queue.answer_task import answer_by_key
from a2a_project.operations import TABLE
from a2a_tasks.agents import Turn, data, registry, text
from a2a_tasks.audit import act_as
from a2a_tasks.execution import housekeeping
from a2a_tasks.models import AuditEntry, Delegation, Event, Run, Task
from a2a_tasks.protocol.errors import InvalidParams, TaskNotWaiting
from a2a_tasks.protocol.values import TaskState, replace
from a2a_tasks.store import call_trees, cancel, delegations, hooks
from a2a_tasks.store.backend import call_news
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.tasks import read_states
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, runner, status_is, take_away
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
ASKED_BY = "urn:a2a-host:asked-by"
#: What agents take that are answered with a form.
MODES = ["text/plain", "application/json"]
FORM = {
    "type": "object",
    "properties": {"seat": {"type": "string", "enum": ["aisle", "window"]}},
    "required": ["seat"],
}


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, and park them soon."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.05
    settings.A2A_PARK_SECONDS = 0.0


async def work(turn: Turn) -> None:
    """Work until it is stopped."""
    await asyncio.Event().wait()


async def call_two(turn: Turn) -> str:
    """Call the next two agents, or work."""
    left = int(turn.text)
    if not left:
        await asyncio.Event().wait()
    one, two = (turn.call(f"level-{left}", str(left - 1), name=name) for name in "ab")
    return str(await turn.gather(one, two))


@contextmanager
def agents(*runs: Any, **attributes: Any) -> Iterator[Client]:
    """Host agents level-1, level-2 ... that may all call each other; return the client of the first."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(playing(run, slug=f"level-{n}", calls="*", **attributes))
            for n, run in enumerate(runs)
        ]
        yield Client(made[0])


def states(agent: str = "") -> list[str]:
    """The states of all tasks, or those of an agent, in order of their creation. For a thread with a connection."""
    found = Task.objects.filter(agent=agent) if agent else Task.objects.all()
    return [TaskState(state).word for state in found.order_by("pk").values_list("state", flat=True)]


async def all_are(word: str, agent: str = "") -> bool:
    """Are all tasks in this state?"""
    return set(await run_in_thread(states, agent)) == {word}


class TestACancel:
    async def test_of_the_root_ends_the_tree(self) -> None:
        with agents(call_two, call_two, call_two, call_two, call_two) as client:
            async with hosting():
                task = await client.begin("4")
                # 1 + 2 + 4 + 8 + 16, as the agents at levels 4 down to 1 call two each.
                await until(lambda: run_in_thread(lambda: Task.objects.count() == 31))
                await client.cancel(task.id)
                assert await all_are("canceled")
                await until(lambda: run_in_thread(no_run_is_left))
        entries = AuditEntry.objects.filter(action="task.cancel").order_by("pk")
        details = [
            json.loads(each)
            for each in await run_in_thread(list, entries.values_list("detail", flat=True))
        ]
        assert details[0] == {"calls": 2}
        assert all(each["by"] == task.id for each in details[1:])
        assert len(details) == 31

    async def test_that_a_process_did_not_finish_is_finished_by_the_next_look(self) -> None:
        with agents(call_two, call_two, call_two, call_two) as client:
            async with hosting():
                task = await client.begin("3")
                await until(lambda: run_in_thread(lambda: Task.objects.count() == 15))
                with pytest.MonkeyPatch.context() as patch:
                    # The process dies after the transaction that cancels the root.
                    patch.setattr(cancel, "cancel_calls", lambda *_, **__: None)
                    await client.cancel(task.id)
                await until(lambda: all_are("canceled"))
                await until(lambda: run_in_thread(no_run_is_left))

    async def test_of_a_child_by_somebody_else_is_the_answer_of_the_call(self) -> None:
        async def plan(turn: Turn) -> str:
            return (await turn.call("level-1", "x")).state.word

        with agents(plan, work) as client:
            async with hosting():
                task = await client.begin()
                await until(has_child)
                child = await run_in_thread(find_child)
                await run_in_thread(cancel.cancel_by_key, child.pk)
                await until(lambda: status_is("completed", task=task.id))
                found = await client.get(task.id)
        assert isinstance(found.artifacts, list)
        assert b"canceled" in bytes(found.artifacts[0])


def no_run_is_left() -> bool:
    """Does no run go on? For a thread with a connection."""
    return not Run.objects.filter(status__in=["queued", "running"]).exists()


def find_child(agent: str = "level-1") -> Task:
    """The newest task of an agent. For a thread with a connection."""
    return Task.objects.filter(agent=agent).latest("pk")


async def has_child(agent: str = "level-1") -> bool:
    """Was the agent called?"""
    return await run_in_thread(Task.objects.filter(agent=agent).exists)


class TestTheEndOfACaller:
    @pytest.mark.parametrize("end", ["completes", "fails", "asks"])
    async def test_cancels_the_tasks_for_which_it_does_not_wait(
        self, settings: Any, end: str
    ) -> None:
        settings.A2A_PARK_SECONDS = 60.0  # it takes back its waits before it is parked

        async def plan(turn: Turn) -> AsyncIterator[Any]:
            for name, at_end in (("cancel", "cancel"), ("leave", "leave")):
                call = turn.call("level-1", "x", name=name, at_end=at_end)
                waiting = asyncio.ensure_future(take(call))
                row = Delegation.objects.filter(name=name)
                await until(functools.partial(run_in_thread, row.exists))
                waiting.cancel()
            if end == "fails":
                raise ValueError
            yield turn.ask("And now?") if end == "asks" else "done"

        with agents(plan, work) as client:
            async with hosting():
                await client.send()
                await until(
                    lambda: run_in_thread(lambda: states("level-1") == ["canceled", "working"])
                )
        assert not await run_in_thread(Delegation.objects.filter(open=True).exists)

    async def test_by_a_death_for_good_cancels_them_at_the_next_look(self) -> None:
        async def plan(turn: Turn) -> None:
            await turn.call("level-1", "x")

        with agents(plan, work, after_crash="fail") as client:
            async with hosting():
                task = await client.begin()
                await until(has_child)
                await run_in_thread(take_away, task.id)
                await until(lambda: status_is("failed", task=task.id))
                await until(lambda: all_are("canceled", "level-1"))

    async def test_keeps_children_as_long_as_it_goes_on(self) -> None:
        async def plan(turn: Turn) -> None:
            await turn.call("level-1", "x")
            await asyncio.Event().wait()

        async def answer(turn: Turn) -> str:
            return "done"

        with agents(plan, answer) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: all_are("completed", "level-1"))
                child = await run_in_thread(find_child)
                assert await run_in_thread(hooks.find_needed, [child.pk]) == {child.pk}
                await client.cancel(task.id)
                assert await run_in_thread(hooks.find_needed, [child.pk]) == set()


async def take(call: Any) -> Any:
    """Await a call in a task of its own."""
    return await call


class TestAMissedEnd:
    async def test_is_found_by_the_look_of_any_process(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = asyncio.Event()

        async def wait(turn: Turn) -> str:
            await go.wait()
            return "done"

        async def plan(turn: Turn) -> str:
            return (await turn.call("level-1", "x")).text

        monkeypatch.setattr(
            call_trees, "settle", lambda task: None
        )  # the process died after the end
        with agents(plan, wait) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: run_in_thread(Run.objects.filter(awaits_calls=True).exists))
                go.set()
                await until(lambda: status_is("completed", task=task.id))

    async def test_long_ago_is_found_by_the_look_at_all(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = asyncio.Event()

        async def wait(turn: Turn) -> str:
            await go.wait()
            return "done"

        async def plan(turn: Turn) -> str:
            return (await turn.call("level-1", "x")).text

        monkeypatch.setattr(delegations, "RECENT", (datetime.timedelta(hours=-1),) * 2)
        monkeypatch.setattr(call_trees, "settle", lambda task: None)
        with agents(plan, wait) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: run_in_thread(Run.objects.filter(awaits_calls=True).exists))
                go.set()
                await until(lambda: all_are("completed", "level-1"))
                await run_in_thread(call_trees.look_at_all)
                await until(lambda: status_is("completed", task=task.id))

    async def test_is_found_by_the_first_look_after_a_time_without_looks(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = asyncio.Event()

        async def wait(turn: Turn) -> str:
            await go.wait()
            return "done"

        async def plan(turn: Turn) -> str:
            return (await turn.call("level-1", "x")).text

        never = datetime.timedelta(hours=-1)
        monkeypatch.setattr(delegations, "RECENT", (never, datetime.timedelta(seconds=30)))
        monkeypatch.setattr(call_trees, "LATELY", 3600.0)
        monkeypatch.setattr(call_trees, "settle", lambda task: None)
        with agents(plan, wait) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: run_in_thread(Run.objects.filter(awaits_calls=True).exists))
                go.set()
                await until(lambda: all_are("completed", "level-1"))
                await run_in_thread(call_trees.look)
                assert await status_is("working", task=task.id)
                monkeypatch.setattr(call_trees, "LATELY", -1.0)
                await until(lambda: status_is("completed", task=task.id))

    async def test_is_found_behind_those_of_callers_that_go_on_waiting(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = asyncio.Event()

        async def wait(turn: Turn) -> str:
            if turn.text == "slow":
                await asyncio.Event().wait()
            await go.wait()
            return "done"

        async def plan(turn: Turn) -> str:
            calls = [turn.call("level-1", name, name=name) for name in turn.text.split()]
            return str(len(await turn.gather(*calls)))

        monkeypatch.setattr(delegations, "RECENT", (datetime.timedelta(hours=-1),) * 2)
        monkeypatch.setattr(call_trees, "settle", lambda task: None)
        monkeypatch.setattr(call_news, "BATCH", 1)
        with agents(plan, wait) as client:
            async with hosting():
                await client.begin("fast slow")
                await until(
                    lambda: run_in_thread(lambda: states("level-1") == ["working", "working"])
                )
                task = await client.begin("fast")
                waiting = Run.objects.filter(awaits_calls=True)
                await until(lambda: run_in_thread(lambda: waiting.count() == 2))
                go.set()
                done = ["completed", "working", "completed"]
                await until(lambda: run_in_thread(lambda: states("level-1") == done))
                await run_in_thread(call_trees.look_at_all)
                await until(lambda: status_is("completed", task=task.id))


async def pass_on(turn: Turn) -> str:
    """Call the next agent, and answer with its answer."""
    level = int(turn.text) + 1
    return (await turn.call(f"level-{level}", str(level))).text


async def pass_on_to(callee: str, turn: Turn) -> str:
    """Call an agent, and answer with its answer."""
    return (await turn.call(callee, "x")).text


def speak_while_waiting(go: asyncio.Event, callee: str) -> Any:
    """Return an agent that calls another one, and says that it works while it waits for the answer."""

    async def run(turn: Turn) -> AsyncIterator[Any]:
        calling = asyncio.create_task(pass_on_to(callee, turn))
        await go.wait()
        yield turn.working("Still here")
        yield await calling

    return run


async def ask(turn: Turn) -> AsyncIterator[Any]:
    """Ask for a seat, and tell the answer."""
    answer = await turn.answer
    if answer is None:
        yield turn.ask("Which seat?", form=FORM)
    else:
        yield f"seat: {answer['seat']}"


async def status_of(client: Client, task: str) -> dict[str, Any]:
    """The message in the status of a task."""
    found = await client.get(task)
    message = found.status.message
    decoded: dict[str, Any] = json.loads(bytes(message)) if message else {}
    return decoded


def answer_part(client: Client, task: str, seat: str) -> Any:
    """The answer to the form, as a client sends it."""
    request = client.request("", task_id=task)
    message = replace(request.message, parts=(data({"seat": seat}),))
    return dataclasses.replace(request, message=message, return_immediately=True)


def works(agent: str) -> bool:
    """Return whether the task of an agent is working. For a thread with a connection."""
    return states(agent) == ["working"]


def count_asked(agent: str) -> int:
    """How often the task of an agent has asked. For a thread with a connection."""
    asked = Event.objects.filter(state=TaskState.INPUT_REQUIRED, task__agent=agent)
    return asked.count()


class TestAQuestion:
    @pytest.mark.parametrize("directly", [False, True])
    async def test_goes_up_to_the_client_and_the_answer_down_and_no_agent_between_runs(
        self, directly: bool
    ) -> None:
        with agents(pass_on, pass_on, pass_on, ask, replies_directly=directly) as client:
            async with hosting():
                task = await client.send("0")
                assert task.status.state is TaskState.INPUT_REQUIRED
                message = await status_of(client, task.id)
                child = await run_in_thread(find_child, "level-3")
                assert message["metadata"][ASKED_BY] == {
                    "agent": "level-3",
                    "taskId": child.public_id,
                }
                assert (message["taskId"], message["contextId"]) == (task.id, task.context_id)
                attempts = await run_in_thread(Run.objects.count)
                with pytest.raises(InvalidParams):
                    await TABLE["SendMessage"](answer_part(client, task.id, "roof"), client.call())
                await TABLE["SendMessage"](answer_part(client, task.id, "aisle"), client.call())
                await until(lambda: status_is("completed", task=task.id))
                found = await client.get(task.id)
        assert isinstance(found.artifacts, list)
        assert b"seat: aisle" in bytes(found.artifacts[0])
        assert await run_in_thread(Run.objects.count) == attempts + 1  # that of the leaf
        asked = Event.objects.filter(state=TaskState.INPUT_REQUIRED).values("task")
        assert await run_in_thread(lambda: sorted(asked.values_list("task__agent", flat=True))) == [
            "level-0",
            "level-1",
            "level-2",
            "level-3",
        ]

    async def test_of_two_children_is_asked_one_after_the_other(self) -> None:
        async def plan(turn: Turn) -> str:
            one, two = await turn.gather(*(turn.call("level-1", "x", name=name) for name in "ab"))
            return f"{one.text}, {two.text}"

        with agents(plan, ask) as client:
            async with hosting():
                task = await client.send()
                await until(
                    lambda: run_in_thread(lambda: states("level-1") == ["input-required"] * 2)
                )
                await TABLE["SendMessage"](answer_part(client, task.id, "aisle"), client.call())
                await until(lambda: status_is("required", task=task.id))
                await TABLE["SendMessage"](answer_part(client, task.id, "window"), client.call())
                await until(lambda: status_is("completed", task=task.id))
                found = await client.get(task.id)
        assert isinstance(found.artifacts, list)
        assert b"seat: aisle" in bytes(found.artifacts[0])
        assert b"seat: window" in bytes(found.artifacts[0])

    async def test_stands_again_after_its_caller_has_said_that_it_works(
        self, settings: Any
    ) -> None:
        settings.A2A_PARK_SECONDS = 600.0  # the caller waits in memory
        go = asyncio.Event()

        with agents(speak_while_waiting(go, "level-1"), ask) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: status_is("required", task=task.id))
                go.set()
                await until(lambda: status_is("working", task=task.id))
                await run_in_thread(call_trees.look_at_all)  # as each process does once a minute
                await until(lambda: run_in_thread(lambda: count_asked("level-0") == 2))
                await TABLE["SendMessage"](answer_part(client, task.id, "aisle"), client.call())
                await until(lambda: status_is("completed", task=task.id))

    @pytest.mark.parametrize("hidden", [(0,), (1,), (0, 1)])
    async def test_is_answered_also_while_words_of_callers_hide_it(
        self, settings: Any, hidden: tuple[int, ...]
    ) -> None:
        settings.A2A_PARK_SECONDS = 600.0  # the callers wait in memory
        go = asyncio.Event()

        callers = [
            speak_while_waiting(go, f"level-{n + 1}")
            if n in hidden
            else functools.partial(pass_on_to, f"level-{n + 1}")
            for n in range(2)
        ]
        with agents(*callers, ask, default_input_modes=MODES) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: status_is("required", task=task.id))
                go.set()
                wanted = [f"level-{n}" for n in hidden]
                await until(lambda: run_in_thread(lambda: all(map(works, wanted))))
                await run_in_thread(call_trees.look)
                with pytest.raises(InvalidParams):
                    await TABLE["SendMessage"](answer_part(client, task.id, "roof"), client.call())
                await TABLE["SendMessage"](answer_part(client, task.id, "aisle"), client.call())
                await until(lambda: status_is("completed", task=task.id))

    async def test_stands_again_when_its_caller_is_parked_by_another_attempt(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def plan(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working("Calling")
            yield (await turn.call("level-1", "x")).text

        monkeypatch.setattr(call_trees, "look_at_all", call_trees.look)
        monkeypatch.setattr(housekeeping, "LOOK_EVERY", 600.0)
        with agents(plan, ask) as client:
            settings.A2A_PARK_SECONDS = 600.0
            async with hosting():
                task = await client.begin()
                await until(lambda: status_is("required", task=task.id))
            settings.A2A_PARK_SECONDS = 0.0
            async with hosting(), runner():
                await until(lambda: run_in_thread(lambda: count_asked("level-0") == 2))
                assert await status_is("required", task=task.id)
                await TABLE["SendMessage"](answer_part(client, task.id, "aisle"), client.call())
                await until(lambda: status_is("completed", task=task.id))

    async def test_that_is_answered_elsewhere_is_taken_back(self) -> None:
        go = asyncio.Event()

        async def ask_and_wait(turn: Turn) -> AsyncIterator[Any]:
            if await turn.answer is None:
                yield turn.ask("Which seat?", form=FORM)
            else:
                await go.wait()

        with agents(pass_on, ask_and_wait, default_input_modes=MODES) as client:
            async with hosting():
                task = await client.send("0")
                child = await run_in_thread(find_child)
                asking = registry.find_hosted("level-1")
                assert asking is not None
                leaf = Client(asking)
                answer = answer_part(leaf, child.public_id, "aisle")
                with pytest.MonkeyPatch.context() as patch:
                    # Nobody has taken it back yet.
                    patch.setattr(delegations, "settle_questions", lambda parent: None)
                    await TABLE["SendMessage"](answer, leaf.call())
                    late = answer_part(client, task.id, "window")
                    with pytest.raises(TaskNotWaiting):
                        await TABLE["SendMessage"](late, client.call())
                await until(lambda: status_is("working", task=task.id))
                go.set()
                await until(lambda: status_is("completed", task=task.id))

    async def test_that_an_operator_answers_is_answered_by_the_operator_at_the_leaf(self) -> None:
        by = list[bool]()

        async def listen(turn: Turn) -> AsyncIterator[Any]:
            by.append(turn.by_operator)
            yield turn.ask("Which seat?") if len(by) < 3 else turn.text

        with agents(pass_on, pass_on, listen) as client:
            async with hosting():
                task = await client.send("0")
                key = await run_in_thread(lambda: Task.objects.get(public_id=task.id).pk)
                with act_as(lambda: "staff:7"):
                    await answer_by_key(key, [text("aisle")], by="bob")
                await until(lambda: status_is("required", task=task.id))
                await client.begin("window", task_id=task.id)
                await until(lambda: status_is("completed", task=task.id))
        assert by == [False, True, False]
        entries = AuditEntry.objects.order_by("pk")
        notes = await run_in_thread(list, entries.values_list("agent", "action", "actor", "detail"))
        via = ["", '{"via":["level-0"]}', '{"via":["level-0","level-1"]}']
        sent = [(f"level-{n}", "task.send", "user:alice", via[n]) for n in range(3)]
        answered = [(f"level-{n}", "task.answer", "staff:7", via[n]) for n in range(3)]
        assert notes == [*sent, *answered, *sent]

    async def test_for_a_secret_has_the_link_of_the_task_that_asks(self) -> None:
        async def use(turn: Turn) -> AsyncIterator[Any]:
            secret = await turn.secret("token")
            yield (
                f"{len(secret)}"
                if secret
                else turn.need_auth("It is used once.", hand_over="token")
            )

        with agents(pass_on, pass_on, use) as client:
            async with hosting():
                task = await client.send("0")
                assert task.status.state is TaskState.AUTH_REQUIRED
                link = (await status_of(client, task.id))["metadata"]["urn:a2a-host:handover"]
                await hand_over(link["url"].rpartition("/")[2], {"token": "canary"})
                await until(lambda: status_is("completed", task=task.id))
                found = await client.get(task.id)
        assert isinstance(found.artifacts, list)
        assert b'"6"' in bytes(found.artifacts[0])

    async def test_that_was_missed_is_found_behind_those_that_stand(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delegations, "RECENT", (datetime.timedelta(hours=-1),) * 2)
        monkeypatch.setattr(call_news, "BATCH", 1)
        with agents(pass_on, ask, default_input_modes=MODES) as client:
            async with hosting():
                first = await client.send("0")
                assert first.status.state is TaskState.INPUT_REQUIRED
                monkeypatch.setattr(call_trees, "settle", lambda task: None)
                await client.begin("0")
                asking = ["input-required", "input-required"]
                await until(lambda: run_in_thread(lambda: states("level-1") == asking))
                await run_in_thread(call_trees.look_at_all)
                await until(lambda: all_are("input-required"))

    async def test_is_returned_to_an_agent_that_answers_itself(self) -> None:
        async def plan(turn: Turn) -> str:
            asked = await turn.call("level-1", "x", questions="return")
            assert asked.state is TaskState.INPUT_REQUIRED
            assert "Which seat?" in asked.text
            answer = await turn.call("level-1", data({"seat": "aisle"}), to=asked, name="answer")
            return f"{answer.text} {answer.task_id == asked.task_id}"

        with agents(plan, ask, default_input_modes=MODES) as client:
            async with hosting():
                task = await client.send()
        assert task.status.state is TaskState.COMPLETED
        assert isinstance(task.artifacts, list)
        assert b"seat: aisle True" in bytes(task.artifacts[0])

    async def test_that_was_answered_does_not_end_the_next_wait(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_PARK_SECONDS = 60.0
        go, begun, looks = asyncio.Event(), asyncio.Event(), list[Any]()

        def look(keys: Any) -> Any:
            looks.append(begun.is_set())
            return read_states(keys)

        monkeypatch.setattr("a2a_tasks.execution.journal.read_states", look)

        async def ask_and_wait(turn: Turn) -> AsyncIterator[Any]:
            if await turn.answer is None:
                yield turn.ask("Which seat?", form=FORM)
            else:
                begun.set()
                await go.wait()

        async def plan(turn: Turn) -> None:
            asked = await turn.call("level-1", "x", questions="return")
            seat = data({"seat": "aisle"})
            await turn.call("level-1", seat, to=asked, name="answer", questions="return")

        with agents(plan, ask_and_wait, default_input_modes=MODES) as client:
            async with hosting():
                sent = asyncio.create_task(client.send())
                await begun.wait()
                for _ in range(100):
                    await run_in_thread(states)
                go.set()
                assert (await sent).status.state is TaskState.COMPLETED
        assert sum(looks) <= 3

    async def test_that_its_caller_does_not_answer_is_cancelled_with_its_turn(self) -> None:
        async def plan(turn: Turn) -> str:
            return (await turn.call("level-1", "x", questions="return")).state.word

        with agents(plan, ask) as client:
            async with hosting():
                await client.send()
                await until(lambda: all_are("canceled", "level-1"))

    async def test_is_asked_for_an_agent_that_cannot_be_parked(self) -> None:
        with agents(pass_on, ask, after_crash="fail") as client:
            async with hosting():
                task = await client.send("0")
                assert task.status.state is TaskState.INPUT_REQUIRED
                await TABLE["SendMessage"](answer_part(client, task.id, "aisle"), client.call())
                await until(lambda: status_is("completed", task=task.id))
