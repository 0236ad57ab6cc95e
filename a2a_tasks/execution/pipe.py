"""Messages between a runner and the process of an agent: pickled values, each after its length.

Both ends are the same code with the same rights, and no other process has an end. The messages of the process are bounded
in bytes, because the runner has other runs: the process refuses a longer one before it has pickled it, and the runner
before it reads it.
"""

from __future__ import annotations

import asyncio
import enum
import pickle
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.conf import conf
from a2a_tasks.conversation_changes import ConversationChanges
from a2a_tasks.execution.run_log_handler import LogLine as Line
from a2a_tasks.telemetry import log_context, tracing
from a2a_tasks.telemetry.log_context import LogContext
from a2a_tasks.telemetry.trace_context import TraceContext

__all__ = [
    "READ_LATER",
    "Answer",
    "Ask",
    "StartRun",
    "FrameTooLarge",
    "TurnEnded",
    "AgentLogged",
    "AgentRaised",
    "UsageReported",
    "Output",
    "AgentWaits",
    "largest_frame",
    "pack",
    "Signal",
    "receive",
    "iterate_messages",
]

_LENGTH = struct.Struct("!Q")
#: Bytes of a message beside the artifacts in it, at most.
MARGIN = 1024 * 1024
#: The attributes of a turn that its process gets with it, and those for which it asks the runner when they are read.
KNOWN_AT_ONCE = (
    *("message", "task_id", "context_id", "caller", "memory", "attempt"),
    *("accepted_output_modes", "return_immediately", "history_length"),
    *("metadata", "extensions", "headers", "by_operator"),
)
READ_LATER = ("history", "references", "task", "task_cancelled")


class Signal(enum.Enum):
    """A message without content."""

    # to the process
    NEXT = enum.auto()  #: The last value was recorded: continue.
    CLOSE = enum.auto()  #: No further value is wanted: close the agent.
    STOP = enum.auto()  #: Stop the agent: its run was stopped.
    # from the process
    STARTED = enum.auto()  #: The turn was received; from now on its agent may act.
    IDLE = enum.auto()  #: No work of the turn is running: the process can take another turn.


# --- to the process -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartRun:
    """Run this agent for a turn."""

    agent: str
    #: The arguments for the Turn that are known at once.
    about: Mapping[str, Any]
    log_context: LogContext
    #: The span of the attempt.
    trace: TraceContext
    #: True if `cancelled` is to be called in place of `run`.
    cancelled: bool

    @classmethod
    def of(cls, agent: str, turn: Turn, *, cancelled: bool = False) -> StartRun:
        """Return the message for a turn; the process asks for further data later."""
        about = {name: getattr(turn, name) for name in KNOWN_AT_ONCE}
        about["seed"] = turn._seed  # noqa: SLF001 - private to agents
        return cls(agent, about, log_context.current.get(), tracing.current(), cancelled)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the question of that number."""

    number: int
    value: Any


# --- from the process -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Output:
    """A value that the agent yielded, with its `file:line`."""

    value: Any
    line: str


@dataclass(frozen=True, slots=True)
class AgentLogged:
    """A log line of the agent, or the number of lines that were not kept."""

    line: Line | None
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """A question: a call of a method of the turn's journal, files, secrets or conversation, or one of READ_LATER."""

    number: int
    of: str
    name: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The agent has ended."""

    #: JSON, since a dict of the agent need not be picklable.
    memory: str
    #: The changes of the conversation.
    conversation: ConversationChanges | None = None


@dataclass(frozen=True, slots=True)
class UsageReported:
    """A report of the usage of models."""

    used: UsageReport


@dataclass(frozen=True, slots=True)
class AgentWaits:
    """A wait of the agent for other tasks begins, or ends."""

    begins: bool


@dataclass(frozen=True, slots=True)
class AgentRaised:
    """The agent raised."""

    text: str
    trace: str
    #: True for AgentError, whose text is for the client.
    is_public: bool

    def fault(self) -> Exception:
        """Return the exception that the runner's process raises."""
        fault = AgentError(self.text) if self.is_public else RemoteFault(self.text)
        fault.__cause__ = RemoteFault(f"in the agent's process:\n\n{self.trace}")
        return fault


class RemoteFault(Exception):
    """An exception from another process."""


# --- the wire -------------------------------------------------------------------------------


class FrameTooLarge(AgentError):
    """A message of the process is longer than the runner accepts."""

    def __init__(self, most: int) -> None:
        super().__init__(f"The agent's output exceeds {most} bytes of artifacts.")
        self.add_note(
            "A2A_MAX_ARTIFACT_BYTES: also steps, memory and files of an agent in a process"
        )


def largest_frame() -> int:
    """Return the maximum number of bytes of a message from the process; 0 = any number. A file grows by a third."""
    return int(conf.MAX_ARTIFACT_BYTES) * 3 // 2 + MARGIN if conf.MAX_ARTIFACT_BYTES else 0


class _PickleFile:
    """A file for pickle that keeps what it is given, up to so many bytes; 0 = any number."""

    def __init__(self, most: int) -> None:
        self.pieces, self.size, self._most = [b""], 0, most

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self._most and self.size > self._most:
            raise FrameTooLarge(int(conf.MAX_ARTIFACT_BYTES))
        self.pieces.append(bytes(data))


def pack(message: Any, most: int = 0) -> list[bytes]:
    """Return a message in its sent form, in pieces.

    Raises FrameTooLarge if it has more than `most` bytes, and pickle's exceptions for a value that cannot be pickled.
    """
    body = _PickleFile(most)
    pickle.dump(message, body, pickle.HIGHEST_PROTOCOL)
    return [_LENGTH.pack(body.size), *body.pieces]


async def receive(reader: asyncio.StreamReader, most: int) -> tuple[Any, int]:
    """Read the next message; returns it with its size in bytes.

    Raises FrameTooLarge before it reads one of more than `most` bytes, IncompleteReadError at the end, OSError when the
    pipe breaks.
    """
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if most and length > most:
        raise FrameTooLarge(int(conf.MAX_ARTIFACT_BYTES))
    return pickle.loads(await reader.readexactly(length)), length  # noqa: S301 - from our own process


def iterate_messages(pipe: socket.socket) -> Any:
    """Yield the messages to the end of the pipe; blocks."""
    with pipe.makefile("rb") as file:
        while (message := _read(file)) is not None:
            yield message


def _read(file: BinaryIO) -> Any:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    body = file.read(*_LENGTH.unpack(head))
    return pickle.loads(body)  # noqa: S301 - from our own process
