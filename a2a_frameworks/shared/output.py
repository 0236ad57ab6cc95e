"""The words of a model on their way to the host: coalesced, and in the log before the step that said them."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from a2a_tasks.agents import Part
from a2a_tasks.agents.emission import ANSWER, Chunk, Emission, ToolEvent

__all__ = [
    "CallNumbers",
    "EmissionQueue",
    "OutputQueue",
    "make_call",
    "make_result",
    "number_artifact",
]

#: Seconds in which pieces of text become one.
COALESCE_SECONDS = 0.03
#: Longest id of a call that the host takes; some gateways of models make longer ones.
MAX_ID_LENGTH = 256


def make_call(id_: str, name: str, arguments: Mapping[str, Any], number: int = 1) -> ToolEvent:
    """Return the event of a call of a tool, the `number`-th of this turn with that id."""
    about = {"name": name, "arguments": arguments}
    return ToolEvent("toolCall", _shorten(id_), about, number)


def make_result(id_: str, content: Any, *, error: bool, number: int = 1) -> ToolEvent:
    """Return the event of the result that the model gets for a call; `error`: the tool failed, or was not called."""
    return ToolEvent("toolResult", _shorten(id_), {"content": content, "error": error}, number)


class CallNumbers:
    """Numbers the calls of a turn that have one id, in the order in which they begin: equal in every attempt."""

    def __init__(self) -> None:
        self._begun: Counter[str] = Counter()
        #: The numbers of the calls without a result yet.
        self._open: defaultdict[str, deque[int]] = defaultdict(deque)

    def begin(self, id_: str) -> int:
        """Return the number of one more call."""
        self._begun[id_] += 1
        self._open[id_].append(self._begun[id_])
        return self._begun[id_]

    def count(self, id_: str) -> int:
        """Return how many calls with this id have begun."""
        return self._begun[id_]

    def find_open(self, id_: str) -> int:
        """Return the number of the first call that has no result; 0 = there is none."""
        return self._open[id_][0] if self._open[id_] else 0

    def end(self, id_: str) -> int:
        """Return the number of the call whose result has come: the first one without a result, else the last one."""
        return self._open[id_].popleft() if self._open[id_] else max(self._begun[id_], 1)


def _shorten(id_: str) -> str:
    return (
        id_
        if len(id_) <= MAX_ID_LENGTH
        else hashlib.sha256(id_.encode(errors="backslashreplace")).hexdigest()
    )


def number_artifact(number: int, kind: str = ANSWER) -> str:
    """Return the id of an artifact by its number in the task: `answer`, `answer-2`, ..."""
    return kind if number == 1 else f"{kind}-{number}"


class EmissionQueue:
    """The emissions of one run on their way to the host."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Emission | None] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        #: The called agents and their tasks, by the ids of calls whose result is not told yet.
        self.called: dict[str, dict[str, str]] = {}
        self._agent_calls: Counter[str] = Counter()

    def number_call(self, id_: str) -> int:
        """Return the number of a call of an agent among those with its id, from 1: equal in every attempt."""
        self._agent_calls[id_] += 1
        return self._agent_calls[id_]

    def note_call(self, id_: str, agent: str, task: str) -> None:
        """Note the task of an agent that a tool has called; the result of the call tells it."""
        self.called[_shorten(id_)] = {"agent": agent, "task": task}

    async def next(self) -> Emission | None:
        """Wait for the next emission; None at the end."""
        return await self._queue.get()

    def confirm(self) -> None:
        """Note that the host has taken the last emission."""
        self._queue.task_done()

    def put(self, said: Emission) -> None:
        """Send something that is no text of an answer."""
        if isinstance(said, ToolEvent) and said.kind == "toolResult" and said.id in self.called:
            said = replace(said, about={**said.about, "metadata": self.called.pop(said.id)})
        self._queue.put_nowait(said)

    def finish(self) -> None:
        """Send the rest of the text, then the mark of the end."""
        self.flush()
        self._queue.put_nowait(None)

    def flush(self) -> None:
        """Send the text that has gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush_soon(self) -> None:
        """Let text gather for a moment, then send it."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(COALESCE_SECONDS, self._flush_later)

    def _flush_later(self) -> None:
        """Send what has gathered; while the host has not taken the piece before, more may gather."""
        self._timer = None
        if self._queue.empty():
            self.flush()
        else:
            self._flush_soon()


class OutputQueue(EmissionQueue):
    """The emissions of one run, in order. The text of each answer of the model is an artifact of its own.

    A replay counts the artifacts of stored answers and sends none; an answer that was cut off begins its artifact anew.
    """

    def __init__(self, artifacts: int) -> None:
        """Make a queue; `artifacts` is the number of artifacts that the task had before the turn."""
        super().__init__()
        #: Artifacts so far, those of stored answers included.
        self._count = artifacts
        self._text, self._buffer = "", ""
        self._begun = False

    def name_artifact(self, kind: str) -> str:
        """Return the id for one more artifact. The number is equal in every attempt."""
        self._count += 1
        return number_artifact(self._count, kind)

    # --- for the run ------------------------------------------------------------------------

    def begin_response(self) -> None:
        """Begin an answer of the model."""
        self._text = self._buffer = ""
        self._begun = False

    def write(self, text: str) -> None:
        """Take a piece of the answer's text."""
        self._text += text
        self._buffer += text
        if not self._buffer or self._timer is not None:
            return
        if self._begun:
            self._flush_soon()
        else:
            self.flush()  # the first word does not wait

    async def end_answer(self, text: str, files: Sequence[Part] = ()) -> None:
        """End an answer: the host has all of it, streamed or not, when this returns."""
        # It was not streamed, or a second try of the request streamed another text.
        if text != self._text:
            self._buffer, self._begun = text, False
        self.flush(last=True)
        self.skip_answer(text)
        for part in files:
            self.put(Chunk(artifact_id=self.name_artifact("file"), parts=(part,), last=True))
        await self._queue.join()

    def skip_answer(self, text: str, files: int = 0) -> None:
        """Count the artifacts of an answer that is in the log already."""
        self._count += bool(text) + files

    def flush(self, *, last: bool = False) -> None:
        """Send the text that has gathered; `last` = the answer ends."""
        super().flush()
        if self._buffer:
            name = number_artifact(self._count + 1)
            parts = (Part(text=self._buffer),)
            self.put(Chunk(artifact_id=name, parts=parts, append=self._begun, last=last))
            self._begun, self._buffer = True, ""
