"""What is known of an episode: what the model server, the ledger, the clients and the database saw."""

from __future__ import annotations

from typing import Any

import msgspec

from lab.framework_kills.cases import Case

__all__ = ["Evidence", "Exchange", "Execution", "Final", "Frame", "Killed", "Kept", "Said"]


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message in a request to the model."""

    role: str
    text: str = ""
    #: Calls of an answer: id, tool, and the text of its arguments.
    calls: tuple[tuple[str, str, str], ...] = ()
    #: Of the result of a tool: the id of its call.
    call_id: str = ""


class Exchange(msgspec.Struct):
    """A request to the model: the answer it wants, and what became of it."""

    number: int
    task: int
    line: int
    at: float
    messages: tuple[Said, ...]
    input_tokens: int = 0
    output_tokens: int = 0
    state: str = "running"
    #: When its answer was over, or its client had left; 0 if neither.
    ended: float = 0.0


class Execution(msgspec.Struct):
    """A call of a tool, as the ledger has it. `done` is 0 if it did not come to its end."""

    number: int
    call: str
    begun: float
    done: float = 0.0


class Killed(msgspec.Struct):
    """A kill that was made, while a task was under way."""

    task: int
    kill: str
    at: float
    pid: int


class Frame(msgspec.Struct):
    """An event that a client saw, in the stream of that number."""

    stream: int
    number: int
    said: dict[str, Any]


class Final(msgspec.Struct):
    """A task in the end: as GetTask shows it, and what each client has seen, by its way to follow it."""

    number: int
    found: dict[str, Any]
    log: list[Frame]
    seen: dict[str, list[Frame]]


class Kept(msgspec.Struct):
    """The stored result of a step."""

    task: str
    name: str
    result: str


class Evidence(msgspec.Struct):
    """All of an episode."""

    case: Case
    exchanges: list[Exchange] = []
    executions: list[Execution] = []
    kills: list[Killed] = []
    finals: list[Final] = []
    steps: list[Kept] = []
