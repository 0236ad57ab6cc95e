"""What agents remember of a conversation, whatever framework they are of. A subclass is the test of some frameworks."""

from __future__ import annotations

from typing import Any

from a2a_tasks.agents import Agent
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import PAY, text_of

__all__ = ["MemoryContract"]


class MemoryContract:
    """The tests. They need the fixtures `agent`, and `client` of that agent in a host."""

    def write(self, result: Any) -> str:
        """Return the result of a tool as the model gets it."""
        return str(result)

    async def test_the_second_task_of_a_conversation_knows_the_first(self, agent: Agent) -> None:
        client = Client(agent)
        async with hosting():
            first = await client.send("SAY I heard $USERS")
        async with hosting():  # another runner: nothing is kept in the process
            second = await client.send("SAY I heard $USERS", context_id=first.context_id)
            failed = await client.send("FAIL 400", context_id=first.context_id)
            third = await client.send("SAY I heard $USERS", context_id=first.context_id)
            other = await client.send("SAY I heard $USERS")
        said = [text_of(task) for task in (first, second, third, other)]
        assert said == [["I heard 1"], ["I heard 2"], ["I heard 3"], ["I heard 1"]]
        assert failed.status.state.word == "failed"

    async def test_other_tasks_of_the_conversation_go_on_while_one_waits(
        self, client: Client
    ) -> None:
        asked = await client.send(PAY)
        other = await client.send("SAY I heard $USERS", context_id=asked.context_id)
        done = await client.send("yes", task_id=asked.id)
        last = await client.send("SAY I heard $USERS", context_id=asked.context_id)
        assert [text_of(task)[0] for task in (other, done, last)] == [
            "I heard 1",
            f"it is done: {self.write('paid 7')}",
            "I heard 3",
        ]
