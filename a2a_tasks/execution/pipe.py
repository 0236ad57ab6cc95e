"""What a runner and the process of an agent say to each other: pickled values, each behind its length.

Both ends are the same code with the same rights, and nobody else holds an end.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from a2a_tasks.agents import AgentError, Message, Turn
from a2a_tasks.caller import Caller
from a2a_tasks.execution.hearing import Said as Line

__all__ = [
    "Answer",
    "Ask",
    "Begun",
    "Carry",
    "Close",
    "Ended",
    "Free",
    "Insist",
    "Logged",
    "Next",
    "Raised",
    "Said",
    "packed",
    "received",
    "receiving",
]

_LENGTH = struct.Struct("!Q")


# --- to the process -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Carry:
    """Run this agent for a turn."""

    agent: str
    message: Message
    task_id: str
    context_id: str
    caller: Caller
    memory: dict[str, Any]
    attempt: int
    accepted_output_modes: tuple[str, ...]
    metadata: Mapping[str, Any]
    extensions: tuple[str, ...]
    by_operator: bool

    @classmethod
    def of(cls, agent: str, turn: Turn) -> Carry:
        """What the process has to know of a turn; the rest it asks for."""
        names = cls.__match_args__[1:]
        return cls(agent, **{name: getattr(turn, name) for name in names})

    def about(self) -> dict[str, Any]:
        """The turn's side of it."""
        return {name: getattr(self, name) for name in self.__match_args__[1:]}


@dataclass(frozen=True, slots=True)
class Next:
    """The word was taken: go on."""


@dataclass(frozen=True, slots=True)
class Close:
    """That was the last word: close the agent."""


@dataclass(frozen=True, slots=True)
class Insist:
    """Nobody waits for the agent: stop it. Said again it is an order to force it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """To the question of that number."""

    number: int
    value: Any


# --- from the process -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """The turn has come; from now on its agent may act."""


@dataclass(frozen=True, slots=True)
class Said:
    """A word of the agent, and where it said it."""

    word: Any
    line: str


@dataclass(frozen=True, slots=True)
class Logged:
    """The agent has told the log something, or some more than is kept of it."""

    line: Line | None
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """The agent wants something that its turn has in the runner's process."""

    number: int
    what: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """The agent came to its end."""

    memory: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Free:
    """Nothing of the turn is at work any more: the process may have another one."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The agent raised."""

    text: str
    trace: str
    #: Was it AgentError, whose text is for the client?
    told: bool

    def fault(self) -> Exception:
        """The exception as the runner's process raises it."""
        fault = AgentError(self.text) if self.told else RemoteFault(self.text)
        fault.__cause__ = RemoteFault(f"in the agent's process:\n\n{self.trace}")
        return fault


class RemoteFault(Exception):
    """What was raised in another process."""


# --- the wire -------------------------------------------------------------------------------


def packed(message: Any) -> bytes:
    """A message as it is sent. Raises whatever pickle raises for what cannot be."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


async def received(reader: asyncio.StreamReader) -> Any:
    """The next message. Raises IncompleteReadError at the end, OSError when the pipe breaks."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return pickle.loads(await reader.readexactly(length))  # noqa: S301 - from our own process


def receiving(pipe: socket.socket) -> Any:
    """Yield the messages as they come, to the end of the pipe; blocks."""
    with pipe.makefile("rb") as file:
        while (message := _read(file)) is not None:
            yield message


def _read(file: BinaryIO) -> Any:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    body = file.read(*_LENGTH.unpack(head))
    return pickle.loads(body)  # noqa: S301 - from our own process
