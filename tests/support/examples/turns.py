"""Driving an agent without a host: make a turn, let it run as the host would, look at what it said."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any

from a2a_tasks import agents
from a2a_tasks.agents import Agent, Message, Part, Turn
from a2a_tasks.agents.content import Content, parts
from a2a_tasks.agents.emission import ANSWER, Chunk, Emission, StatusUpdate, emission
from a2a_tasks.agents.turn import Later
from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.execution.agent_call import drive
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.values import UNSET, Role, Task, TaskState

__all__ = ["Conversation", "heard", "make_turn", "shown_text"]

_ids = itertools.count(1)


def make_turn(
    *content: Content,
    earlier: Iterable[Message] = (),
    memory: dict[str, Any] | None = None,
    **about: Any,
) -> Turn:
    """Make the turn of one message. Needs a running loop, as the host has one."""
    message = Message(message_id=f"m{next(_ids)}", role=Role.USER, parts=parts(content))

    async def history() -> list[Message]:
        return [*earlier, message]

    async def references() -> list[Task]:
        return []

    loop = asyncio.get_running_loop()
    return Turn(
        message=message,
        task_id="task-1",
        context_id="context-1",
        caller=ANONYMOUS,
        history=Later(history, loop),
        references=Later(references, loop),
        memory={} if memory is None else memory,
        **about,
    )


async def heard(agent: Agent, turn: Turn) -> list[Emission]:
    """Run the agent in the host's own way (threads for synchronous ones) and return what it said."""
    said: list[Emission] = []
    async for word in drive(agent, turn):
        begun = any(isinstance(s, Chunk) and s.artifact_id == ANSWER for s in said)
        said.append(emission(word, begun=begun))
    return said


class Conversation:
    """Several turns of one task: the memory and the messages go on."""

    def __init__(self, agent: Agent, **about: Any) -> None:
        self.agent, self.about = agent, about
        self.memory: dict[str, Any] = {}
        self.messages: list[Message] = []
        self.conversation = agents.Conversation()
        self.said: list[Emission] = []

    async def say(self, *content: Content) -> list[Emission]:
        """Send one message; returns what the agent said to it."""
        about = {"conversation": self.conversation, **self.about}
        turn = make_turn(*content, earlier=list(self.messages), memory=self.memory, **about)
        self.messages.append(turn.message)
        self.said = await heard(self.agent, turn)
        if self.state in INTERRUPTED:  # what was asked comes into the history with the answer
            asked = self.said[-1]
            assert isinstance(asked, StatusUpdate)
            self.messages.append(
                Message(
                    message_id=f"q{next(_ids)}",
                    role=Role.AGENT,
                    parts=asked.parts,
                    extensions=asked.extensions,
                )
            )
        return self.said

    @property
    def state(self) -> TaskState:
        """Where the task stands after what was said last; the end of `run` completes it."""
        states = [said.state for said in self.said if isinstance(said, StatusUpdate)]
        return states[-1] if states and states[-1] is not TaskState.WORKING else TaskState.COMPLETED

    @property
    def question(self) -> str:
        """What the agent asked back."""
        last = self.said[-1]
        assert isinstance(last, StatusUpdate)
        assert last.state is TaskState.INPUT_REQUIRED
        return shown_text(last.parts)

    def artifact(self, name: str) -> Part:
        """The only part of an artifact said in one piece."""
        (chunk,) = [s for s in self.said if isinstance(s, Chunk) and s.name == name]
        (part,) = chunk.parts
        return part

    @property
    def artifacts(self) -> list[str | None]:
        """The names of the artifacts, in order."""
        return [said.name for said in self.said if isinstance(said, Chunk)]


def shown_text(content: Iterable[Part]) -> str:
    """The text of parts."""
    return "\n".join(part.text for part in content if part.text is not UNSET)
