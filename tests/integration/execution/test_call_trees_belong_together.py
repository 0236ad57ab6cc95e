"""One name, one bill and one trace: whose the tasks of a tree are, which budget bounds them, and what their spans tell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from a2a_console.rerun.run_again import run_again
from a2a_tasks.agents import CallRefused, Turn, registry
from a2a_tasks.caller import Caller
from a2a_tasks.models import BudgetShare, Delegation, Run, Task
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.usage import read_usage
from tests.support.agents_under_test import playing
from tests.support.budgets import limited
from tests.support.execution.host import Client
from tests.support.execution.waiting import until
from tests.support.metrics import samples
from tests.support.spans import Spans

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.quick_on("sqlite"),
    pytest.mark.usefixtures("local_runs"),
]


@contextmanager
def three(leaf: Any) -> Iterator[Client]:
    """Host agents of which the first calls the second, and that the third; return the client of the first."""

    async def first(turn: Turn) -> str:
        return (await turn.call("second", turn.text)).text

    async def second(turn: Turn) -> str:
        return (await turn.call("third", turn.text)).text

    with ExitStack() as stack:
        made = [
            stack.enter_context(playing(run, slug=slug, calls="*"))
            for slug, run in (("first", first), ("second", second), ("third", leaf))
        ]
        yield Client(made[0])


async def find_leaf() -> Task:
    """The task of the third agent."""
    return await run_in_thread(Task.objects.get, agent="third")


async def test_the_caller_of_the_first_owns_them_all_and_nobody_else_sees_them() -> None:
    paths = list[tuple[str, ...]]()

    async def leaf(turn: Turn) -> Any:
        paths.append(turn.caller.path)
        return turn.ask("Which one?")

    with three(leaf) as client:
        task = await client.send("x")
        assert task.status.state is TaskState.INPUT_REQUIRED
        child, agent = await find_leaf(), registry.find_hosted("third")
        assert agent is not None
        assert (await Client(agent).get(child.public_id)).id == child.public_id
        bob = Client(agent, Caller(principal="user:bob"))
        with pytest.raises(TaskNotFound):
            await bob.get(child.public_id)
        with pytest.raises(TaskNotFound):
            await bob.cancel(child.public_id)
        with pytest.raises(TaskNotFound):
            await bob.send("mine", task_id=child.public_id)
        with pytest.raises(TaskNotFound):
            await Client(client.agent, bob.caller).send("mine", task_id=task.id)
    assert paths == [("first", "second")]


async def test_a_budget_of_each_task_bounds_the_tree() -> None:
    async def spend(turn: Turn) -> str:
        for number in range(9):
            await turn.step(f"call {number}", use, turn)
        return "spent"

    async def use(turn: Turn) -> str:
        await turn.usage(model="m", input_tokens=1)
        return "used"

    async def both(turn: Turn) -> str:
        one = await turn.call("spending", "x", name="one")
        two = await turn.call("spending", "x", name="two")
        return f"{one.state.word} {two.state.word}"

    with playing(spend, slug="spending"), playing(both, calls="*") as root:
        async with limited(12, share=BudgetShare.TASK):
            task = await Client(root).send("x")
    assert isinstance(task.artifacts, list)
    assert b"completed failed" in bytes(task.artifacts[0])


async def test_the_usage_of_the_first_includes_that_of_those_that_it_called() -> None:
    async def spend(turn: Turn) -> None:
        await turn.usage(model="m", input_tokens=3, cost=0.5, currency="EUR")
        await turn.usage(model="n", input_tokens=4, cost=0.25, currency="EUR")

    with three(spend) as client:
        task = await client.send("x")
        found = await run_in_thread(read_usage, client.call().scope(""), [task.id])
    (called,) = found[task.id].values()
    assert list(found[task.id]) == ["third"]
    assert (called.requests, called.input_tokens, called.cost) == (2, 7, 0.75)


async def test_a_task_that_is_run_again_begins_a_tree_of_its_own() -> None:
    paths = list[tuple[str, ...]]()

    async def leaf(turn: Turn) -> str:
        paths.append(turn.caller.path)
        return "done"

    with three(leaf) as client:
        first = await client.send("x")
        old = await run_in_thread(Task.objects.get, public_id=first.id)
        child = await find_leaf()
        root = (await run_again(old.pk)).task
        await until(lambda: run_in_thread(lambda: has_completed(root)))
        alone = (await run_again(child.pk)).task
        await until(lambda: run_in_thread(lambda: has_completed(alone)))
    calls = Delegation.objects.order_by("pk").values_list("root", "child__agent")
    tree = ["second", "third"]
    rows = await run_in_thread(list, calls)
    assert rows == [(key, agent) for key in (old.pk, root) for agent in tree]
    assert paths == [("first", "second"), ("first", "second"), ()]
    requests = Run.objects.filter(task=alone).values_list("request", flat=True)
    assert '"root"' not in (await run_in_thread(list, requests))[0]


def has_completed(key: int) -> bool:
    """Has the task completed? For a thread with a connection."""
    return Task.objects.get(pk=key).state == TaskState.COMPLETED


async def test_their_attempts_are_in_one_trace(spans: Spans) -> None:
    async def leaf(turn: Turn) -> str:
        return "done"

    with three(leaf) as client:
        await client.send("x")
        names = [f"invoke_agent {slug}" for slug in ("first", "second", "third")]
        await until(lambda: all(spans.named(name) for name in names))
    first, second, third = (spans.named(name)[0] for name in names)
    assert first.context.trace_id == second.context.trace_id == third.context.trace_id
    calls = {f"step call {slug}" for slug in ("second", "third")}
    steps = {span.context.span_id for name in calls for span in spans.named(name)}
    assert {one.parent.span_id for one in (second, third) if one.parent} == steps


async def test_calls_are_counted_by_their_outcome() -> None:
    async def fail(turn: Turn) -> Any:
        return turn.fail("no")

    async def both(turn: Turn) -> None:
        await turn.call("third", "x")
        with contextlib.suppress(CallRefused):
            await turn.call("nobody", "x")

    with playing(fail, slug="third"), playing(both, slug="counted", calls="*") as root:
        await Client(root).send("x")
        found = samples("a2a_calls_total", agent="counted")
        seconds = samples("a2a_call_seconds_count", agent="counted")
    assert found == {("third", "failed"): 1, ("others", "refused"): 1}
    assert seconds == {("third",): 1}
