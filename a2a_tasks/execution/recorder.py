"""Writing the events of a run: events that come during a flush are written together by the next.

An agent that yields all its values at once costs one transaction; with pauses between them, each value is written at
once. The order is kept and memory is bounded: `room` makes a fast agent wait for the database.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Any

from a2a_tasks.agents import Agent, AgentError, Conversation, Turn
from a2a_tasks.agents.author_errors import definition, keepable, line_of
from a2a_tasks.agents.emission import (
    ANSWER,
    Chunk,
    Emission,
    PairJoiner,
    Reply,
    StatusUpdate,
    ToolEvent,
    emission,
    mend_emission,
)
from a2a_tasks.conf import conf
from a2a_tasks.conversation_changes import ConversationChanged
from a2a_tasks.execution.agent_call import RunThreads
from a2a_tasks.execution.meter import Meter
from a2a_tasks.execution.sources import StoredFiles, StoredSecrets
from a2a_tasks.execution.tool_events import ToolEvents
from a2a_tasks.failpoints import failpoint
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import (
    INTERRUPTED,
    TERMINAL,
    EventKind,
    IllegalTransition,
    advance,
    assemble,
)
from a2a_tasks.protocol.soundness import check_json, check_parts
from a2a_tasks.protocol.titles import MAX_TITLE, title_of
from a2a_tasks.protocol.values import Artifact, ArtifactUpdate, Message, Part, Role, TaskState
from a2a_tasks.store import event_log
from a2a_tasks.store.append import append_batched
from a2a_tasks.store.db import retry_until_answered, run_in_thread
from a2a_tasks.store.folding import assemble_without
from a2a_tasks.store.records import ArtifactRow, Batch, ClaimedRun, NewEvent, RunEnd, StatusRow

__all__ = ["Recorder"]

logger = logging.getLogger(__name__)
#: Most events that wait for the database, and most of their bytes; with more, the agent waits too.
MAX_WAITING, MAX_BYTES = 1000, 1024 * 1024
#: Emissions of one agent after which other runs get the event loop.
BREATH = 50
#: Exceptions for an emission that cannot be recorded.
UNFIT = (AgentError, IllegalTransition, TypeError, ValueError)


MENDED = "%s: a value was changed, because it is no JSON: half a surrogate pair, NUL in an id, NaN, or an integer beyond 64 bits"


def _find_line(agent: Agent, turn: Turn) -> str:
    """Return the `file:line` at which an agent has yielded its last value."""
    return line_of(turn._source) or definition(agent.run)  # noqa: SLF001


class TooMuch(Exception):
    """The setting whose limit was exceeded: for the run's trace, which operators read."""


class _OpenArtifact:
    """The state of one artifact of the task."""

    __slots__ = ("bodies", "inherited", "open", "position")

    def __init__(self, position: int, *, open_: bool, inherited: bool = False) -> None:
        self.position, self.open = position, open_
        #: True if its row was not folded when this run was claimed. It may be folded at any moment, so it is reopened.
        self.inherited = inherited and open_
        #: The bodies of its chunks, if all of them are in the present batch.
        self.bodies: list[str] | None = None


class Recorder:
    """The recorder of one run's events. Not thread-safe: it belongs to the event loop."""

    def __init__(
        self,
        run: ClaimedRun,
        conversation: Conversation | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._run, self._conversation = run, conversation
        self._meter = meter or Meter(run)
        self.state, self.is_task = run.state, run.is_task
        self._artifacts = {
            artifact_id: _OpenArtifact(position, open_=growing, inherited=True)
            for artifact_id, position, growing in run.artifacts
        }
        self._most, self._most_bytes = int(conf.MAX_ARTIFACTS), int(conf.MAX_ARTIFACT_BYTES)
        #: Bytes of this run's artifacts.
        self._artifact_bytes = 0
        #: Bytes of the present batch, and number of batches written before it.
        self._gathered, self._written = 0, 0
        self._batch = self._new_batch()
        self._flusher: asyncio.Task[None] | None = None
        self._memory = run.memory
        self._tools = ToolEvents(run.task, run.input_number)
        self._pairs = PairJoiner()
        #: True if a value was changed, and if its author was told.
        self._mended = self._has_warned = False
        #: A question that is written with the end of the run, since the turn may still change its conversation.
        self._question: tuple[NewEvent, StatusRow] | None = None
        #: Id of this turn's artifact for plain text, and whether it has begun: further text is appended. A later attempt of
        #: the same turn replaces it.
        self.answer = ANSWER if run.input_number == 1 else f"{ANSWER}-{run.input_number}"
        self.answer_begun = False
        #: The ids of the artifacts that this attempt has written to, or had written to before its park.
        self._touched = set[str]()
        #: The beginning of the texts in its artifacts.
        self._words = ""
        #: Number of values that the agent has yielded, and how many of the first ones are in the log already, because the
        #: run was parked after them.
        self.said, self.repeats = 0, run.said

    def _new_batch(self) -> Batch:
        run = self._run
        return Batch(task=run.task, run=run.key, token=run.token, ordered=run.ordered)

    async def record(
        self, values: AsyncIterator[Any], agent: Agent, turn: Turn, threads: RunThreads
    ) -> None:
        """Record what the agent yields, until it ends its task or stops.

        Raises what `emit` raises, and AgentError, TypeError or ValueError for a value that is no emission.
        """
        if not agent.replies_directly and self.state is TaskState.SUBMITTED:
            self.emit(StatusUpdate(TaskState.WORKING))
        async for value in values:
            if threads.stopped:  # further output does not count
                raise asyncio.CancelledError
            if self.said == 0:
                failpoint("worker.agent_started")
            try:
                await self._take(emission(value, answer=self.answer, begun=self.answer_begun))
            except UNFIT as fault:  # the agent's own frames are not in this trace
                fault.add_note(f"It was emitted at {_find_line(agent, turn)}")
                raise
            if self._mended and not self._has_warned:
                self._warn(agent, turn)
            self.said += 1
            if self.full or self.said % BREATH == 0:
                await self.room()
            if self.state in TERMINAL:
                return
        self._release_halves()

    async def _take(self, emitted: Emission) -> None:
        """Record an emission, unless it was recorded before the run was parked."""
        if isinstance(emitted, Chunk):
            emitted = self._pairs.join(emitted)
        mended = mend_emission(emitted)
        self._mended = self._mended or mended is not emitted
        if self.said < self.repeats:
            self._note_repetition(mended)
        elif isinstance(mended, ToolEvent):
            await self._tell(mended)
        elif isinstance(mended, Chunk):
            if self._run.begun_before:
                mended = await self._take_back(mended)
            self.emit(await self._prepare(mended))
        else:
            self._release_halves()
            self.emit(await self._prepare(mended))

    def _release_halves(self) -> None:
        for chunk in self._pairs.release():
            self._mended = True
            self.emit(chunk)

    def _warn(self, agent: Agent, turn: Turn) -> None:
        """Tell the author, once in a run, that a value was mended, and after which line."""
        self._has_warned = True
        logging.getLogger(type(agent).__module__).warning(MENDED, _find_line(agent, turn))

    async def _take_back(self, chunk: Chunk) -> Chunk:
        """Return a chunk so that it does not follow what an earlier attempt of this run appended to the artifact.

        The artifact is told anew as it was before the run; if it did not exist, the chunk begins it.
        """
        first = chunk.artifact_id not in self._touched
        self._touched.add(chunk.artifact_id)
        if not (first and chunk.append and chunk.artifact_id in self._artifacts):
            return chunk
        reading = functools.partial(
            run_in_thread, assemble_without, self._run.key, self._run.task, chunk.artifact_id
        )
        before = await retry_until_answered(reading, repeatable=True)
        if before is None:
            return chunk
        if not before.parts:
            return replace(chunk, append=False)
        self.emit(
            Chunk(
                artifact_id=chunk.artifact_id,
                parts=tuple(before.parts),
                name=before.name,
                description=before.description,
                metadata=before.metadata,
                extensions=tuple(before.extensions),
            )
        )
        return chunk

    async def _prepare(self, emitted: StatusUpdate | Chunk | Reply) -> StatusUpdate | Chunk | Reply:
        """Return an emission with the link for secrets, and with its files outside."""
        if isinstance(emitted, StatusUpdate) and emitted.hand_over:
            emitted = await StoredSecrets(self._run).add_link(emitted)
        if StoredFiles.concern(emitted.parts):
            parts = await StoredFiles(self._run).offload(emitted.parts)
            emitted = replace(emitted, parts=parts)
        return emitted

    async def _tell(self, event: ToolEvent) -> None:
        """Add the event of a tool, which is no status of the task, unless it was told before."""
        told = await self._tools.prepare(event)
        if told is None:
            return
        self._raise_failure()
        if self._question is not None:
            self._put_question()
        self._begin_if_silent(TaskState.WORKING, speaks=True)
        body = event_log.status_body(TaskState.WORKING, event_log.now(), self._message(told))
        self._gathered += len(body)
        self._batch.events.append(NewEvent(EventKind.TOOL, body))
        self._schedule()

    def emit(self, emitted: StatusUpdate | Chunk | Reply) -> None:
        """Add one emission, which is written soon.

        Raises IllegalTransition, the failure of an earlier flush, and AgentError for too many artifacts or bytes.
        """
        self._raise_failure()
        if self._question is not None:
            self._put_question()
        match emitted:
            case StatusUpdate():
                self._begin_if_silent(emitted.state)
                self._status(emitted)
            case Chunk():
                self._begin_if_silent(TaskState.WORKING, speaks=True)
                self._chunk(emitted)
            case Reply():
                self._reply(emitted)
        self._schedule()

    def _begin_if_silent(self, coming: TaskState, *, speaks: bool = False) -> None:
        """Add the status WORKING before the first emission of a run, unless that is WORKING itself or a rejection."""
        self._batch.reveal = self.is_task = True
        begun = self.state is TaskState.WORKING or self.state in TERMINAL
        says_so = coming in {TaskState.WORKING, TaskState.REJECTED} and not speaks
        if not begun and not says_so:
            self._status(StatusUpdate(TaskState.WORKING))

    def _status(self, update: StatusUpdate) -> None:
        state = advance(self.state, update.state)
        # This may raise: then nothing has changed.
        message = self._message(update) if update.parts else ""
        self.state = state
        at = event_log.now()
        body = event_log.status_body(state, at, message)
        text = title_of(update.parts)
        if not text and state in TERMINAL:
            text = title_of([Part(text=self._words)])
        event = NewEvent(EventKind.STATUS, body, state)
        row = StatusRow(state, at, message, text)
        uses_conversation = self._conversation is not None and self._conversation.is_used
        if state in INTERRUPTED and uses_conversation:
            self._question = event, row
        else:
            self._put_status(event, row)

    def _put_question(self) -> None:
        """Put the status that was held back into the batch."""
        if self._question is not None:
            question, self._question = self._question, None
            self._put_status(*question)

    def _put_status(self, event: NewEvent, row: StatusRow) -> None:
        self._batch.status = row
        self._gathered += len(event.body)
        self._batch.events.append(event)

    def _message(self, said: StatusUpdate | Reply) -> str:
        check_parts(said.parts)
        check_json(said.metadata)
        message = write(
            Message(
                message_id=token_hex(16),
                context_id=self._run.context_id,
                task_id=self._run.task_id if self.is_task else None,
                role=Role.AGENT,
                parts=said.parts,
                metadata=said.metadata,
                extensions=said.extensions,
            )
        )
        limit = self._most_bytes and max(self._most_bytes, MAX_BYTES)  # the text of a failure fits
        if limit and len(message) > limit:
            raise AgentError(f"A message of the agent exceeds {limit} bytes.") from TooMuch(
                "A2A_MAX_ARTIFACT_BYTES"
            )
        return message.decode()

    def _chunk(self, chunk: Chunk) -> None:
        # This raises for values that JSON cannot express, before anything is changed.
        body = self._body(chunk, last=chunk.last)
        artifact = self._get_artifact(chunk)
        self.answer_begun = self.answer_begun or chunk.artifact_id == self.answer
        if len(self._words) < MAX_TITLE:
            texts = [part.text[:MAX_TITLE] for part in chunk.parts if isinstance(part.text, str)]
            self._words += "".join(texts)
        self._batch.events.append(NewEvent(EventKind.ARTIFACT, body))
        if artifact.bodies is not None:
            artifact.bodies.append(body)
        artifact.open = True
        if chunk.last:
            self._close(chunk.artifact_id)

    def end_repeats(self) -> None:
        """Record all further values: the agent has come to the step in which its run was parked.

        One that has not repeated all that it said before goes on with its artifacts.
        """
        if self.said < self.repeats:
            self._touched.update(self._artifacts)
        self.repeats = 0

    def _note_repetition(self, emitted: Emission) -> None:
        """Note a value of before the park. Later pieces are appended to its artifact."""
        if isinstance(emitted, Chunk):
            self.answer_begun = self.answer_begun or emitted.artifact_id == self.answer
            self._touched.add(emitted.artifact_id)

    def _body(self, chunk: Chunk, *, last: bool) -> str:
        if "\x00" in chunk.artifact_id or not chunk.artifact_id:
            raise ValueError("an artifact id must not be empty nor hold NUL")
        check_parts(chunk.parts)
        if chunk.metadata is not None:
            check_json(chunk.metadata)
        is_new = chunk.artifact_id not in self._artifacts
        if is_new:
            self._check_number()
        update = ArtifactUpdate(
            artifact=Artifact(
                artifact_id=chunk.artifact_id,
                name=chunk.name,
                description=chunk.description,
                parts=chunk.parts,
                metadata=chunk.metadata,
                extensions=chunk.extensions,
            ),
            append=chunk.append and not is_new,
            last_chunk=last,
        )
        body = write(update)
        self._check_size(len(body))
        return body.decode()

    def _check_number(self) -> None:
        limit = self._most
        if limit and len(self._artifacts) >= limit:
            raise AgentError(f"The agent's output exceeds {limit} artifacts.") from TooMuch(
                "A2A_MAX_ARTIFACTS"
            )

    def _check_size(self, size: int) -> None:
        limit = self._most_bytes
        if limit and self._artifact_bytes + size > limit:
            raise AgentError(
                f"The agent's output exceeds {limit} bytes of artifacts."
            ) from TooMuch("A2A_MAX_ARTIFACT_BYTES")
        self._artifact_bytes += size
        self._gathered += size

    def _get_artifact(self, chunk: Chunk) -> _OpenArtifact:
        """Return the artifact of a chunk; a new one gets its row with this batch."""
        previous = self._artifacts.get(chunk.artifact_id)
        if previous is not None and chunk.append:
            if previous.inherited or not previous.open:
                self._reopen(previous)
            return previous
        position = previous.position if previous else len(self._artifacts)
        begun = self._artifacts[chunk.artifact_id] = _OpenArtifact(position, open_=True)
        begun.bodies = []
        batch = self._batch
        if previous is not None:  # earlier entries about the artifact are obsolete
            batch.artifacts = [row for row in batch.artifacts if row.position != position]
            batch.closed = [closed for closed in batch.closed if closed != position]
            batch.reopened = [reopened for reopened in batch.reopened if reopened != position]
        batch.artifacts.append(ArtifactRow(position, chunk.artifact_id, len(batch.events)))
        return begun

    def _reopen(self, artifact: _OpenArtifact) -> None:
        """Reopen a closed artifact that gets another chunk: its folded row is incomplete now."""
        if artifact.inherited:
            artifact.inherited = False
            self._batch.reopened.append(artifact.position)
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
        """Close a complete artifact: fold it here if this batch has all of it and it is small, else in the store."""
        artifact = self._artifacts[artifact_id]
        artifact.open = False
        if artifact.bodies is None or sum(map(len, artifact.bodies)) > MAX_BYTES:
            self._batch.closed.append(artifact.position)
            return
        whole = assemble(artifact.bodies)[artifact_id].decode()
        self._batch.artifacts = [
            replace(row, body=whole) if row.position == artifact.position else row
            for row in self._batch.artifacts
        ]

    def _reply(self, reply: Reply) -> None:
        last = StatusUpdate(
            TaskState.COMPLETED, reply.parts, reply.metadata, extensions=reply.extensions
        )
        if self.is_task:  # too late for a Message: it becomes the task's final status
            self._begin_if_silent(TaskState.COMPLETED)
            self._status(last)
            return
        body = self._message(reply)
        self._gathered += len(body)
        self._batch.events.append(NewEvent(EventKind.MESSAGE, body))
        # It is also the final status: if the host could not wait for the Message, the client got a task.
        self._status(last)

    def remember(self, memory: Mapping[str, Any], where: str = "") -> None:
        """Store the turn's memory, and the changes of its conversation, with the last batch.

        `where` is the `file:line` of the agent. Raises TypeError that names a member of the memory that is not JSON.
        """
        if not isinstance(memory, dict):
            raise TypeError(f"turn.memory must be a dict, not a {type(memory).__name__}")
        memory = keepable("turn.memory", memory, where)
        kept = write(memory).decode() if memory else ""
        if kept != self._memory:
            self._batch.memory = self._memory = kept
        if self._conversation is not None:
            self._batch.conversation = self._conversation.list_changes()

    def finish(self, end: RunEnd) -> None:
        """End the run: close open artifacts, complete the task unless it ended or waits, and release the task."""
        self._mark_last_chunk()
        for artifact_id, artifact in self._artifacts.items():
            if artifact.open:
                self._close(artifact_id)
        if self._question is not None:
            self._put_question()
        if self.state not in TERMINAL | INTERRUPTED:
            self._begin_if_silent(TaskState.COMPLETED)
            self._status(StatusUpdate(TaskState.COMPLETED))
        if end.line and self._batch.status:
            self._batch.status = self._batch.status._replace(text=end.line)
        self._batch.end = end
        self._schedule()

    def _mark_last_chunk(self) -> None:
        """Mark the last piece of the answer as the last, if it is not written yet."""
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
            # The next `emit` raises a failure; a stopped run has no next one, so the exception is retrieved here.
            self._flusher.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _raise_failure(self) -> None:
        if self._flusher is not None and self._flusher.done():
            self._flusher.result()  # after a failure nothing more is written: the log would have a gap
            self._flusher = None

    @property
    def _ready(self) -> bool:
        """True if there is something to write. A terminal status waits for the end of the run: both are one transaction."""
        batch = self._batch
        return batch.end is not None or (bool(batch.events) and not batch.ends_task)

    async def _flush(self) -> None:
        await asyncio.sleep(0)  # let the agent yield further values
        while self._ready:
            batch, self._batch, self._gathered = self._batch, self._new_batch(), 0
            batch.after = self._written
            for artifact in self._artifacts.values():
                artifact.bodies = None  # further chunks are in another batch
            await self._write(batch)
            self._written += 1

    async def _write(self, batch: Batch) -> None:
        """Write the batch, after what was spent before; if another run has changed the conversation meanwhile, write that the task failed."""
        if self._meter.waiting:
            await self._meter.settle()
        try:
            await retry_until_answered(functools.partial(self._append, batch), repeatable=True)
        except ConversationChanged as fault:
            logger.info("run %s has failed: %s", batch.run, fault)
            self._fail_instead(batch, fault)
            await retry_until_answered(functools.partial(self._append, batch), repeatable=True)

    def _fail_instead(self, batch: Batch, fault: ConversationChanged) -> None:
        """Let the last batch of a run end with a failure; its other events stay, except a direct Message."""
        stays = [e for e in batch.events if e.kind is not EventKind.MESSAGE]
        ends = [e for e in stays if e.state in TERMINAL | INTERRUPTED]
        message = self._message(StatusUpdate(TaskState.FAILED, (Part(text=str(fault)),)))
        at = event_log.now()
        body = event_log.status_body(TaskState.FAILED, at, message)
        batch.events = [e for e in stays if e not in ends]
        batch.events.append(NewEvent(EventKind.STATUS, body, TaskState.FAILED))
        batch.status = StatusRow(TaskState.FAILED, at, message, str(fault)[:MAX_TITLE])
        self.state = TaskState.FAILED
        batch.reveal, batch.again = True, False
        batch.memory = batch.conversation = None
        batch.end = RunEnd("failed", f"{type(fault).__name__}: {fault}\n")

    @staticmethod
    async def _append(batch: Batch) -> None:
        """Write the batch. On Overloaded, mark it as a repetition for the next try, and raise."""
        try:
            await append_batched(batch)
        except Overloaded:
            batch.come_again()
            raise

    @property
    def full(self) -> bool:
        """True if the agent must wait for the database."""
        return len(self._batch.events) >= MAX_WAITING or self._gathered >= MAX_BYTES

    async def wait_written(self) -> None:
        """Wait until all events are in the log. Raises LeaseLost, Overloaded."""
        while self._flusher is not None:
            flusher = self._flusher
            await asyncio.shield(flusher)
            if self._flusher is flusher:
                self._flusher = None
            if self._ready:
                self._schedule()

    async def room(self) -> None:
        """Wait for the database if the batch is full, and let other agents use the event loop."""
        if self.full:
            await self.wait_written()
        else:
            await asyncio.sleep(0)
