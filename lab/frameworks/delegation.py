"""Agents of the host as tools, in environments of their own. A subclass is the test of a framework."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from a2a_tasks.agents import Turn
from a2a_tasks.models import Delegation, Task
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state, hosting, take_away, tools_told
from tests.support.execution.waiting import until
from tests.support.frameworks import hosted, text_of

ONE = 'CALL billing {"message": "order 7"}\nSAY it is $RESULT'
TWO = ONE.replace("\n", ' + CALL search {"message": "8"}\n')


async def echo(turn: Turn) -> str:
    """Answer with what was asked."""
    return f"billing: {turn.text}"


def count_calls(task: str) -> int:
    """The number of tasks that a task has called. For a thread with a connection."""
    return Delegation.objects.filter(parent__public_id=task).count()


class Delegating:
    """The tests."""

    #: Calls of one answer are under way at once.
    calls_at_once: ClassVar[bool] = True

    def make(self, *slugs: str) -> Any:
        """A supervisor that asks the model of the contract's agent, and has the agents as tools."""
        raise NotImplementedError

    async def test_a_call_is_a_task_of_the_other_agent(self, model: ModelServer) -> None:
        with (
            playing(echo, slug="billing"),
            hosted(self.make("billing"), calls="*", streaming=True) as agent,
        ):
            async with hosting():
                task = await Client(agent).send(ONE)
        assert "billing: order 7" in text_of(task)[-1]
        call, result = await run_in_thread(tools_told, task.id)
        assert call["toolCall"]["arguments"] == {"message": "order 7"}
        assert result["toolResult"]["error"] is False
        child = await run_in_thread(Task.objects.filter(agent="billing").latest, "pk")
        about = {"agent": "billing", "task": child.public_id}
        assert result["toolResult"]["metadata"] == about

    async def test_a_refused_call_is_an_error_that_the_model_answers(
        self, model: ModelServer
    ) -> None:
        with hosted(self.make("billing"), calls=("search",)) as agent:
            async with hosting():
                task = await Client(agent).send(ONE)
        assert "does not call billing" in text_of(task)[-1]
        _, result = await run_in_thread(tools_told, task.id)
        assert result["toolResult"]["error"] is True

    async def test_a_call_is_not_made_again_after_its_process_has_died(
        self, model: ModelServer
    ) -> None:
        go = asyncio.Event()

        async def wait(turn: Turn) -> str:
            await go.wait()
            return "done"

        with (
            playing(wait, slug="billing"),
            playing(wait, slug="search"),
            hosted(self.make("billing", "search"), calls="*") as agent,
        ):
            client = Client(agent)
            async with hosting():
                task = await client.begin(TWO)
                calls = 2 if self.calls_at_once else 1
                await until(self.has_called(task.id, calls))
                await run_in_thread(take_away, task.id)
                go.set()
                await until(lambda: client_state(client, task.id, "completed"))
                assert "done" in text_of(await client.get(task.id))[-1]
        assert await run_in_thread(count_calls, task.id) == 2
        assert [one.line for one in model.exchanges] == [0, 1]

    def has_called(self, task: str, calls: int) -> Callable[[], Any]:
        """Has the task called so many?"""

        async def look() -> bool:
            return await run_in_thread(count_calls, task) >= calls

        return look
