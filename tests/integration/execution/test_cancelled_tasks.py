"""`Agent.cancelled` for tasks that wait: in a process of its own as elsewhere, and noted in the log of the run."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_tasks.agents import Agent, Turn, registry
from a2a_tasks.execution import cancelled_tasks, run_log
from a2a_tasks.execution.cancelled_tasks import CancelledTasks
from a2a_tasks.execution.processes import Processes
from a2a_tasks.execution.run_log import RunLogWriter
from a2a_tasks.models import CancelNotice, RunLine
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import cancel_notices
from a2a_tasks.store.db import run_in_thread
from tests.integration.execution.process_agents.agents import Cleaning
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, not_carried
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
logger = logging.getLogger("tests.agent")
CALLED = "The task was cancelled while it waited: cancelled() is called."


@pytest.fixture(autouse=True)
def local(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs be this process's own, and lines be written soon."""
    settings.A2A_RUNS = "local"
    settings.A2A_AGENT_PROCESSES = 1
    settings.A2A_STOP_SECONDS = 0.5
    monkeypatch.setattr(run_log, "EVERY", 0.02)


async def cancel_while_it_waits(agent: Agent, count: int, text: str = "hello") -> list[str]:
    """Cancel a task that waits for its client; return the lines in the log of its run, once there are so many."""

    def read() -> list[str]:
        return list(RunLine.objects.order_by("number").values_list("text", flat=True))

    async def written() -> bool:
        return len(await run_in_thread(read)) >= count

    async with hosting():
        client = Client(agent)
        task = await client.send(text)
        assert task.status.state.word == "input-required"
        await until(not_carried)  # the memory is written after the question
        await client.cancel(task.id)
        await until(written)
        assert await client.states(task.id) == "canceled"
    return await run_in_thread(read)


async def ask(turn: Turn) -> Any:
    """Ask."""
    return turn.ask("which?")


class TestTheLogOfTheRun:
    async def test_it_says_that_the_agent_was_called_and_what_it_logged(self) -> None:
        async def cancelled(self: Any, turn: Turn) -> None:
            logger.warning("freed %s", turn.text)

        with playing(ask, cancelled=cancelled) as agent:
            assert await cancel_while_it_waits(agent, 2) == [CALLED, "freed hello"]

    async def test_it_has_the_trace_of_an_error(self) -> None:
        def cancelled(self: Any, turn: Turn) -> None:
            raise ValueError("no such sandbox")

        with playing(ask, cancelled=cancelled) as agent:
            called, trace = await cancel_while_it_waits(agent, 2)
        assert (called, trace.splitlines()[0]) == (CALLED, "cancelled() failed.")
        assert "ValueError: no such sandbox" in trace

    async def test_it_says_that_the_agent_took_too_long(self) -> None:
        async def cancelled(self: Any, turn: Turn) -> None:
            await asyncio.Event().wait()

        with playing(ask, cancelled=cancelled, cancel_seconds=0.1) as agent:
            lines = await cancel_while_it_waits(agent, 2)
        assert lines == [CALLED, "cancelled() did not end within 0.1 s, and was stopped."]


async def test_the_messages_of_calls_that_wait_are_bounded_and_further_notices_wait_in_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = list[str](), asyncio.Event()

    async def cancelled(self: Any, turn: Turn) -> None:
        begun.append(turn.text)
        await go.wait()

    def has_begun(count: int) -> bool:
        return len(begun) == count

    monkeypatch.setattr(cancelled_tasks, "MOST_BYTES", 1)
    monkeypatch.setattr(cancel_notices, "CLAIM_BYTES", 1)
    with playing(ask, cancelled=cancelled) as agent:
        client = Client(agent)
        async with hosting():
            tasks = [await client.send(text) for text in ("one", "two", "three")]
            await until(not_carried)
        for task in tasks:
            await client.cancel(task.id)
        calls, notebook = CancelledTasks(Processes()), RunLogWriter()
        for _ in range(3):
            await calls.look(notebook)
        await until(lambda: begun == ["one"])
        assert await run_in_thread(CancelNotice.objects.count) == 2
        go.set()
        for count in (2, 3):
            await until(lambda: not calls._calls)
            await calls.look(notebook)
            await until(functools.partial(has_begun, count))
        await calls.close()
        await notebook.close()
    assert begun == ["one", "two", "three"]


async def test_after_notices_that_cannot_be_read_one_is_taken_whichever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[bool]()

    def take(agents: Any, deaf: Any, *, any_one: bool) -> list[Any]:
        asked.append(any_one)
        if len(asked) < 3:
            raise Overloaded
        return []

    monkeypatch.setattr(cancel_notices, "take", take)
    calls, notebook = CancelledTasks(Processes()), RunLogWriter()
    for _ in range(4):
        with contextlib.suppress(Overloaded):
            await calls.look(notebook)
    await calls.close()
    await notebook.close()
    assert asked == [False, True, True, False]


@pytest.mark.backend("sqlite")  # what happens in processes is the same on both databases
class TestInAProcess:
    @pytest.fixture
    def agent(self, agent_processes: None) -> Iterator[Agent]:
        """An agent in a process that has something to free."""
        registry.register(Cleaning)
        found = registry.find_hosted(Cleaning.slug)
        assert found is not None
        yield found
        registry._found.pop(Cleaning.slug)

    async def test_the_agent_hears_of_it_there(self, agent: Agent, tmp_path: Path) -> None:
        lines = await cancel_while_it_waits(agent, 2, f"asking_first {tmp_path}")
        pid = (tmp_path / "pid").read_text()
        assert lines == [CALLED, f"freed 7 in {pid}, canceled"]

    async def test_its_error_is_in_the_log_of_the_run(self, agent: Agent, tmp_path: Path) -> None:
        (tmp_path / "broken").touch()
        called, trace = await cancel_while_it_waits(agent, 2, f"asking_first {tmp_path}")
        assert (called, trace.splitlines()[0]) == (CALLED, "cancelled() failed.")
        assert "LookupError: no such sandbox" in trace

    async def test_one_that_never_ends_is_killed_and_the_place_is_free_again(
        self, agent: Agent, tmp_path: Path
    ) -> None:
        (tmp_path / "stuck").touch()
        _, late = await cancel_while_it_waits(agent, 2, f"asking_first {tmp_path}")
        assert late == "cancelled() did not end within 2 s, and was stopped."
        async with hosting():
            task = await Client(agent).send("plain")
        assert task.status.state.word == "completed"
