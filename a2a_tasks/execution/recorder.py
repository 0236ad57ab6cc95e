"""Writing down what an agent says: events gather while a flush is under way and go together with the next.

An agent that says everything in one breath costs one transaction; one that thinks between words has each word
written at once. Order is kept, memory is bounded: `room` makes a fast agent wait for the database.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from a2a_tasks.agents import AgentError
from a2a_tasks.agents.emission import ANSWER, Chunk, Emission, Reply, Status
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, advance, assemble
from a2a_tasks.protocol.soundness import check_json, check_parts
from a2a_tasks.protocol.values import Artifact, ArtifactUpdate, Message, Part, Role, TaskState
from a2a_tasks.store import log
from a2a_tasks.store.append import appending
from a2a_tasks.store.hop import until_answered
from a2a_tasks.store.records import ArtifactRow, Assignment, Batch, NewEvent, RunEnd

__all__ = ["Recorder"]

#: Events, and their bytes, that wait for the database before an agent has to wait too.
MOST_WAITING, MOST_BYTES = 1000, 1024 * 1024
#: Members within members that are looked at for what JSON cannot say.
DEEPEST = 20


class TooMuch(Exception):
    """Which setting was in the way: for the run's trace, which operators read."""


class _Artifact:
    """Where an artifact of the task stands."""

    __slots__ = ("bodies", "inherited", "open", "position")

    def __init__(self, position: int, *, open_: bool, inherited: bool = False) -> None:
        self.position, self.open = position, open_
        #: Was its row not folded when this run was claimed? It may be folded at any moment, so it is opened anew.
        self.inherited = inherited and open_
        #: The bodies of its chunks, if all of them are in the batch being gathered.
        self.bodies: list[str] | None = None


class Recorder:
    """The pen of one run. Not thread-safe: it belongs to the event loop."""

    def __init__(self, assignment: Assignment) -> None:
        self._run = assignment
        self.state, self.is_task = assignment.state, assignment.is_task
        self._artifacts = {
            artifact_id: _Artifact(position, open_=growing, inherited=True)
            for artifact_id, position, growing in assignment.artifacts
        }
        self._most, self._most_bytes = int(conf.MAX_ARTIFACTS), int(conf.MAX_ARTIFACT_BYTES)
        #: Bytes this run has said in artifacts.
        self._said = 0
        #: Bytes of the batch that is gathered, and how many batches were written before it.
        self._gathered, self._written = 0, 0
        self._batch = self._new_batch()
        self._flusher: asyncio.Task[None] | None = None
        self._memory = assignment.memory
        #: Id of this turn's artifact of plain text; a later attempt of the same turn begins it anew.
        self.answer = (
            ANSWER if assignment.input_number == 1 else f"{ANSWER}-{assignment.input_number}"
        )
        self.answer_begun = False

    def _new_batch(self) -> Batch:
        return Batch(task=self._run.task, run=self._run.run, token=self._run.token)

    def say(self, said: Emission) -> None:
        """Take down one emission; it is written soon. Raises IllegalTransition, and the flush's failure.

        AgentError for more, or larger, artifacts than there may be.
        """
        self._raise_failure()
        match said:
            case Status():
                self._begin_if_silent(said.state)
                self._status(said.state, said.parts, said.metadata)
            case Chunk():
                self._begin_if_silent(TaskState.WORKING, speaks=True)
                self._chunk(said)
            case Reply():
                self._reply(said)
        self._schedule()

    def _begin_if_silent(self, coming: TaskState, *, speaks: bool = False) -> None:
        """The first word of a run is WORKING, unless it says so itself or refuses at once."""
        self._batch.reveal = self.is_task = True
        begun = self.state is TaskState.WORKING or self.state in TERMINAL
        says_so = coming in {TaskState.WORKING, TaskState.REJECTED} and not speaks
        if not begun and not says_so:
            self._status(TaskState.WORKING)

    def _status(
        self,
        state: TaskState,
        parts: tuple[Part, ...] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        reached = advance(self.state, state)
        message = (
            self._message(parts, metadata) if parts else ""
        )  # may raise: then nothing has changed
        self.state = reached
        at = log.now()
        self._batch.status = (state, at, message)
        body = log.status_body(state, at, message)
        self._gathered += len(body)
        self._batch.events.append(NewEvent(EventKind.STATUS, body, state))

    def _message(self, parts: tuple[Part, ...], metadata: Mapping[str, Any] | None) -> str:
        check_parts(parts)
        check_json(metadata)
        return write(
            Message(
                message_id=secrets.token_hex(16),
                context_id=self._run.context_id,
                task_id=self._run.task_id if self.is_task else None,
                role=Role.AGENT,
                parts=parts,
                metadata=metadata,
            )
        ).decode()

    def _chunk(self, chunk: Chunk) -> None:
        body = self._body(
            chunk, last=chunk.last
        )  # raises for what JSON cannot say, before anything is changed
        artifact = self._place(chunk)
        self.answer_begun = self.answer_begun or chunk.artifact_id == self.answer
        self._batch.events.append(NewEvent(EventKind.ARTIFACT, body))
        if artifact.bodies is not None:
            artifact.bodies.append(body)
        artifact.open = True
        if chunk.last:
            self._close(chunk.artifact_id)

    def _body(self, chunk: Chunk, *, last: bool) -> str:
        if "\x00" in chunk.artifact_id or not chunk.artifact_id:
            raise ValueError("an artifact id must not be empty nor hold NUL")
        check_parts(chunk.parts)
        check_json(chunk.metadata)
        self._check_number(chunk.artifact_id)
        update = ArtifactUpdate(
            artifact=Artifact(
                artifact_id=chunk.artifact_id,
                name=chunk.name,
                description=chunk.description,
                parts=chunk.parts,
                metadata=chunk.metadata,
                extensions=chunk.extensions,
            ),
            append=chunk.append,
            last_chunk=last,
        )
        body = write(update)
        self._check_size(len(body))
        return body.decode()

    def _check_number(self, artifact_id: str) -> None:
        most = self._most
        if most and artifact_id not in self._artifacts and len(self._artifacts) >= most:
            raise AgentError(
                f"The agent made more than {most} artifacts, which is as many as a task may have."
            ) from TooMuch("A2A_MAX_ARTIFACTS")

    def _check_size(self, size: int) -> None:
        most = self._most_bytes
        if most and self._said + size > most:
            raise AgentError(
                f"The agent said more than {most} bytes in artifacts, which is as much as it may."
            ) from TooMuch("A2A_MAX_ARTIFACT_BYTES")
        self._said += size
        self._gathered += size

    def _place(self, chunk: Chunk) -> _Artifact:
        """The artifact a chunk belongs to; one that begins gets its row with this batch."""
        known = self._artifacts.get(chunk.artifact_id)
        if known is not None and chunk.append:
            self._reopen(known)
            return known
        position = known.position if known else len(self._artifacts)
        begun = self._artifacts[chunk.artifact_id] = _Artifact(position, open_=True)
        begun.bodies = []
        batch = self._batch  # what it said of the artifact so far is of no interest any more
        batch.artifacts = [row for row in batch.artifacts if row.position != position]
        batch.closed = [closed for closed in batch.closed if closed != position]
        batch.reopened = [reopened for reopened in batch.reopened if reopened != position]
        batch.artifacts.append(ArtifactRow(position, chunk.artifact_id, len(batch.events)))
        return begun

    def _reopen(self, artifact: _Artifact) -> None:
        """A closed artifact grows after all: what was folded is no longer the whole."""
        if artifact.inherited:
            artifact.inherited = False
            self._batch.reopened.append(artifact.position)
            return
        if artifact.open:
            return
        self._batch.closed = [one for one in self._batch.closed if one != artifact.position]
        if artifact.bodies is None:
            self._batch.reopened.append(artifact.position)
            return
        self._batch.artifacts = [
            replace(row, body="") if row.position == artifact.position else row
            for row in self._batch.artifacts
        ]

    def _close(self, artifact_id: str) -> None:
        """The artifact is whole: fold it here if this batch has all of it and it is not large, else in the store."""
        artifact = self._artifacts[artifact_id]
        artifact.open = False
        if artifact.bodies is None or sum(map(len, artifact.bodies)) > MOST_BYTES:
            self._batch.closed.append(artifact.position)
            return
        whole = assemble(artifact.bodies)[artifact_id].decode()
        self._batch.artifacts = [
            replace(row, body=whole) if row.position == artifact.position else row
            for row in self._batch.artifacts
        ]

    def _reply(self, reply: Reply) -> None:
        if self.is_task:  # too late for a Message: it is the task's closing word
            self._begin_if_silent(TaskState.COMPLETED)
            self._status(TaskState.COMPLETED, reply.parts, reply.metadata)
            return
        body = self._message(reply.parts, reply.metadata)
        self._gathered += len(body)
        self._batch.events.append(NewEvent(EventKind.MESSAGE, body))
        # Also the closing word: if the host could not wait for it, the client was told of a task.
        self._status(TaskState.COMPLETED, reply.parts, reply.metadata)

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Keep the turn's memory, with what is written last. Raises TypeError if JSON cannot say it, with the member."""
        try:
            kept = write(memory).decode() if memory else ""
        except (TypeError, ValueError, RecursionError) as fault:
            where = _unfit("turn.memory", memory)
            raise TypeError(f"{where} cannot be kept as JSON: {fault}") from fault
        if kept != self._memory:
            self._batch.memory = self._memory = kept

    def finish(self, end: RunEnd) -> None:
        """The run is over: close what is open, complete what is not ended or waiting, let go of the task."""
        self._mark_last_chunk()
        for artifact_id, artifact in self._artifacts.items():
            if artifact.open:
                self._close(artifact_id)
        if self.state not in TERMINAL | INTERRUPTED:
            self._begin_if_silent(TaskState.COMPLETED)
            self._status(TaskState.COMPLETED)
        self._batch.end = end
        self._schedule()

    def _mark_last_chunk(self) -> None:
        """The answer's last piece says so, if it has not left yet."""
        answer = self._artifacts.get(self.answer)
        if answer is None or not answer.open or not self._batch.events:
            return
        event = self._batch.events[-1]
        opening = f'{{"artifact":{{"artifactId":"{self.answer}"'
        if event.kind is EventKind.ARTIFACT and event.body.startswith(opening):
            body = event.body[:-1] + ',"lastChunk":true}'
            self._batch.events[-1] = NewEvent(EventKind.ARTIFACT, body)

    def _schedule(self) -> None:
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush())
            # Whoever speaks next is told of a failure; a run that is stopped says nothing more.
            self._flusher.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _raise_failure(self) -> None:
        if self._flusher is not None and self._flusher.done():
            self._flusher.result()  # after a failure nothing more is written: the log would have a hole
            self._flusher = None

    @property
    def _ready(self) -> bool:
        """Is there something to write? A terminal status waits for the end of its run: they are one transaction."""
        batch = self._batch
        return batch.end is not None or (bool(batch.events) and not batch.ends_task)

    async def _flush(self) -> None:
        await asyncio.sleep(0)  # hear the agent out
        while self._ready:
            batch, self._batch, self._gathered = self._batch, self._new_batch(), 0
            batch.after = self._written
            for artifact in self._artifacts.values():
                artifact.bodies = None  # what comes now is in another batch
            await until_answered(functools.partial(self._append, batch), repeatable=True)
            self._written += 1

    @staticmethod
    async def _append(batch: Batch) -> None:
        """Write the batch. On Overloaded mark it as a repetition for the next try, and raise."""
        try:
            await appending(batch)
        except Overloaded:
            batch.come_again()
            raise

    @property
    def full(self) -> bool:
        """Should the agent wait?"""
        return len(self._batch.events) >= MOST_WAITING or self._gathered >= MOST_BYTES

    async def written(self) -> None:
        """Wait until everything said is in the log. Raises Fenced, Overloaded."""
        while self._flusher is not None:
            flusher = self._flusher
            await asyncio.shield(flusher)
            if self._flusher is flusher:
                self._flusher = None
            if self._ready:
                self._schedule()

    async def room(self) -> None:
        """Let the database keep up, and other agents have the loop."""
        if self.full:
            await self.written()
        else:
            await asyncio.sleep(0)


def _unfit(name: str, value: Any, depth: int = 0) -> str:
    """The innermost member that JSON cannot say, as code would name it."""
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list | tuple):
        members = enumerate(value)
    for key, member in members:
        try:
            write({key: member} if isinstance(value, dict) else member)
        except (TypeError, ValueError, RecursionError):
            inner = f"{name}[{key!r}]"
            return _unfit(inner, member, depth + 1) if depth < DEEPEST else inner
    return name
