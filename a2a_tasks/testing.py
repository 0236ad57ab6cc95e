"""Tests of agents: a conversation with one, without a database and without a server.

`[asked, answered] = await converse(Greeter, "Hello", "Ada")` in a test of an app. docs/agents.md has an example.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from a2a_tasks.agents import Agent, AgentError, Conversation, Journal, Message, Part
from a2a_tasks.agents.author_errors import definition, keepable
from a2a_tasks.agents.emission import (
    ANSWER,
    Chunk,
    Content,
    Emission,
    Reply,
    StatusUpdate,
    ToolEvent,
    emission,
    mend_emission,
    parts,
)
from a2a_tasks.agents.later import Later
from a2a_tasks.agents.turn import Turn
from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.execution.agent_call import drive
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, advance
from a2a_tasks.protocol.values import Artifact, Role, Task, TaskState, TaskStatus

__all__ = ["AgentAnswer", "Talk", "converse"]

#: The time of a status that waits.
NOON = "2030-01-01T12:00:00.000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """The answer of an agent to one message."""

    #: The state of the task at the end of the turn.
    state: TaskState
    #: The parts of statuses and artifacts, in the order in which the agent said them.
    parts: tuple[Part, ...]
    #: The parts of each artifact by its id; plain text that was yielded is the artifact `answer`.
    artifacts: Mapping[str, tuple[Part, ...]]
    #: The statuses, chunks of artifacts and replies that the agent yielded.
    emissions: tuple[Emission, ...]
    #: `turn.memory` after the turn.
    memory: Mapping[str, Any]
    #: The id of the task. A message after a question belongs to the same task, another message begins a new one.
    task_id: str

    @property
    def text(self) -> str:
        """Return all texts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part.text, str))


async def converse(
    agent: type[Agent] | Agent, *messages: Content | Sequence[Content], **about: Any
) -> list[AgentAnswer]:
    """Send messages to an agent, one after the other, in one conversation. Return its answer to each.

    A message is a text, a part, or a list of both. `about` and the errors are those of `Talk`.
    """
    talk = Talk(agent, **about)
    said = [(each,) if isinstance(each, str | Part) else tuple(each) for each in messages]
    return [await talk.say(*content) for content in said]


class _QuickJournal(Journal):
    """A journal whose sleeps take no time."""

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Talk:
    """A conversation with an agent, message by message: `answer = await Talk(Greeter).say("Hello")`.

    `about` are arguments of `Turn`, such as `caller`, `files`, `secrets`, `extensions` and `accepted_output_modes`.
    `conversation`, `journal` and `attempt` are given to the first turn only. Without a journal, sleeps take no time.
    """

    def __init__(self, agent: type[Agent] | Agent, **about: Any) -> None:
        self.agent = agent() if isinstance(agent, type) else agent
        self._kept: Conversation = about.pop("conversation", None) or Conversation()
        first = ("journal", "attempt")
        self._first: dict[str, Any] = {name: about.pop(name) for name in first if name in about}
        self._about: dict[str, Any] = {"caller": ANONYMOUS, **about}
        self._context_id = str(uuid.uuid4())
        self._messages: list[Message] = []
        #: The task that waits for an answer; its messages, memory and artifacts.
        self._task: Task | None = None
        self._history: list[Message] = []
        self._memory: dict[str, Any] = {}
        self._artifacts: dict[str, tuple[Part, ...]] = {}

    async def say(self, *content: Content) -> AgentAnswer:
        """Send a message, and return the answer.

        An AgentError becomes the state FAILED, as clients see it; other exceptions of the agent are raised.
        """
        number, loop = len(self._messages) + 1, asyncio.get_running_loop()
        message = Message(message_id=f"message-{number}", role=Role.USER, parts=parts(content))
        if self._task is None:
            self._history, self._memory, self._artifacts = [], {}, {}
        self._history.append(message)
        self._messages.append(message)
        self._kept = self._kept.carry_on(self._messages)
        turn = Turn(
            message=message,
            task_id=self._task.id if self._task else str(uuid.uuid4()),
            context_id=self._context_id,
            history=Later(_give(list(self._history)), loop),
            references=Later(_give([]), loop),
            memory=dict(self._memory),
            task=Later(_give(self._task), loop),
            conversation=self._kept,
            **{"journal": _QuickJournal(), **self._about, **self._first},
        )
        self._first.clear()
        said, fault = await self._run(turn)
        return self._conclude(turn, said, fault)

    async def _run(self, turn: Turn) -> tuple[list[Emission], AgentError | None]:
        """Return the emissions of the agent up to the end of the task, and its error for the client."""
        said: list[Emission] = []
        try:
            async with contextlib.aclosing(drive(self.agent, turn)) as values:
                async for value in values:
                    begun = any(isinstance(e, Chunk) and e.artifact_id == ANSWER for e in said)
                    said.append(mend_emission(emission(value, answer=ANSWER, begun=begun)))
                    if _ends(said[-1]):
                        break
            turn._unused.tell(type(self.agent).__module__, self.agent.run)  # noqa: SLF001 - warnings for the author
        except AgentError as fault:
            return said, fault
        turn.memory = keepable("turn.memory", turn.memory, definition(self.agent.run))
        return said, None

    def _conclude(self, turn: Turn, said: list[Emission], fault: AgentError | None) -> AgentAnswer:
        """Keep what the turn leaves for the next one."""
        if fault is not None:
            said.append(StatusUpdate(TaskState.FAILED, parts((str(fault),))))
        state, artifacts = _gather(said)
        for one in said:
            if isinstance(one, StatusUpdate | Reply) and one.parts:
                self._note(turn, one.parts, one.extensions, in_task=True)
        for whole in artifacts.values():
            self._note(turn, whole, in_task=False)
        if fault is None:
            self._memory = dict(turn.memory)
        else:
            self._kept = self._kept.carry_on(self._messages, changed=False)
        self._task = None
        if state in INTERRUPTED:
            self._artifacts |= artifacts
            results = [
                Artifact(artifact_id=key, parts=all_) for key, all_ in self._artifacts.items()
            ]
            self._task = Task(
                id=turn.task_id,
                context_id=turn.context_id,
                status=TaskStatus(state=state, timestamp=NOON),
                artifacts=[Raw(write(one)) for one in results],
                history=[Raw(write(one)) for one in self._history],
            )
        return AgentAnswer(
            state=state,
            parts=tuple(p for one in said if not isinstance(one, ToolEvent) for p in one.parts),
            artifacts=artifacts,
            emissions=tuple(said),
            memory=dict(turn.memory),
            task_id=turn.task_id,
        )

    def _note(
        self, turn: Turn, said: tuple[Part, ...], extensions: tuple[str, ...] = (), *, in_task: bool
    ) -> None:
        """Add what the agent said to the messages; artifacts are messages of the conversation only."""
        message = Message(
            message_id=f"answer-{len(self._messages)}",
            role=Role.AGENT,
            task_id=turn.task_id,
            context_id=turn.context_id,
            parts=said,
            extensions=extensions,
        )
        self._messages.append(message)
        if in_task:
            self._history.append(message)


def _gather(said: list[Emission]) -> tuple[TaskState, dict[str, tuple[Part, ...]]]:
    """Return the state at the end of the turn, and the artifacts."""
    state, artifacts = TaskState.WORKING, dict[str, tuple[Part, ...]]()
    for one in said:
        match one:
            case StatusUpdate():
                state = advance(state, one.state)
            case Reply():
                state = TaskState.COMPLETED
            case Chunk():
                old = artifacts.get(one.artifact_id, ()) if one.append else ()
                artifacts[one.artifact_id] = old + one.parts
    asks_or_ended = state in TERMINAL | INTERRUPTED
    return state if asks_or_ended else TaskState.COMPLETED, artifacts


def _give(value: Any) -> Any:
    async def load() -> Any:
        return value

    return load


def _ends(one: Emission) -> bool:
    return isinstance(one, Reply) or (isinstance(one, StatusUpdate) and one.state in TERMINAL)
