"""Driving an agent without a host: make a turn, let it run as the host would, look at what it said."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any

from a2a_tasks.agents import Agent, Message, Part, Turn
from a2a_tasks.agents.emission import ANSWER, Chunk, Content, Emission, emission, parts
from a2a_tasks.agents.turn import Later
from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.execution.agent_call import drive
from a2a_tasks.protocol.values import UNSET, Role, Task

__all__ = ["heard", "make_turn", "shown_text"]

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


def shown_text(content: Iterable[Part]) -> str:
    """The text of parts."""
    return "\n".join(part.text for part in content if part.text is not UNSET)
