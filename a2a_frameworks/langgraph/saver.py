"""The checkpointer of one turn: its checkpoints are durable steps of the turn, and the last one is kept with the conversation.

A step holds what a checkpoint changes, so the steps of a turn together are as large as its new messages. The host fences
and removes them as all steps, and the adapter needs no table of its own.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import INTERRUPT

from a2a_frameworks.langgraph.messages import drop_files
from a2a_frameworks.langgraph.output import GraphOutput
from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.agents.later import is_running_here
from a2a_tasks.agents.steps import DurableStep
from a2a_tasks.conf import conf

__all__ = ["TurnSaver"]

logger = logging.getLogger("turn.state")
#: Most bytes that one step may have.
MAX_STEP_BYTES = 8 * 1024 * 1024
#: The beginnings of the names of channels that call nodes: by an edge, by edges of several nodes, or by `Send`.
FOLLOWING = ("branch:to:", "join:", "__pregel_tasks")
#: A value as LangGraph's serializer makes it: its type and its bytes.
Dumped = tuple[str, bytes]


class Value(NamedTuple):
    """A value of a channel, as the difference to the value before: `head`, then so many of its bytes, then `tail`."""

    channel: str
    version: str | int | float
    kind: str
    head: bytes
    kept: int
    tail: bytes


class Put(msgspec.Struct, array_like=True, tag=True):
    """A checkpoint, without the values that its parent has, too."""

    thread: str
    namespace: str
    checkpoint: str
    parent: str | None
    body: Dumped
    metadata: Dumped
    values: list[Value]


class Written(msgspec.Struct, array_like=True, tag=True):
    """The writes of a node before the next checkpoint: (index, channel, kind, bytes) each."""

    thread: str
    namespace: str
    checkpoint: str
    task: str
    path: str
    writes: list[tuple[int, str, str, bytes]]


class Deleted(msgspec.Struct, array_like=True, tag=True):
    """All of a thread is gone."""

    thread: str


Change = Put | Written | Deleted


class Entry(msgspec.Struct, array_like=True):
    """One step: a change, the checkpoint that the turn began with, and the artifacts that are said by now."""

    change: Change
    base: str
    numbers: list[int]


class _NotTaken(Exception):
    """There is no such step yet."""


_entry = msgspec.msgpack.Decoder(Entry)
_changes = msgspec.msgpack.Decoder(list[Change])


class TurnSaver(InMemorySaver):
    """A checkpointer that stores each change in a step of the turn before it returns."""

    def __init__(self, turn: Turn, output: GraphOutput) -> None:
        super().__init__()
        self._turn, self._output = turn, output
        self._loop, self._lock = asyncio.get_running_loop(), asyncio.Lock()
        #: The number of steps, and the checkpoint that the turn began with.
        self._count, self._base = 0, ""
        #: The newest value of each channel, and the number of its bytes that are kept with the conversation.
        self._newest: dict[tuple[str, str, str], bytes] = {}
        self._sizes: dict[tuple[str, str, str], int] = {}
        #: Interrupts that the turn began with, by task, and tasks that came to another one in an earlier attempt.
        self._asked: list[tuple[str, Dumped]] = []
        self._asked_again: set[str] = set()
        #: Keys whose value could not be stored: each is told once.
        self._unfit: set[str] = set()

    # --- state --------------------------------------------------------------------------------

    def load(self, snapshot: bytes, thread: str) -> None:
        """Begin with a state that `dump` returned."""
        for change in _changes.decode(snapshot):
            change.thread = thread
            self._apply(change)
            self._asked += _list_interrupts(change)
        self._base = self.find_newest(thread)

    def find_newest(self, thread: str) -> str:
        """Return the id of the newest checkpoint of the graph itself; empty = there is none."""
        return max(self.storage[thread][""], default="")

    async def replay(self) -> None:
        """Repeat the changes of earlier attempts of the turn. Raises AgentError."""
        while True:
            try:
                stored = await self._turn.step(f"checkpoint {self._count + 1}", _refuse_access)
            except _NotTaken:
                return
            entry = _entry.decode(base64.b64decode(stored))
            if entry.base != self._base:
                raise AgentError(
                    "Another task of this conversation has changed it meanwhile. Send the message again."
                )
            self._count += 1
            self._apply(entry.change)
            self._output.skip_numbers(entry.numbers)
            self._asked_again |= {task for task, _ in _list_interrupts(entry.change)}

    def list_used(self) -> set[str]:
        """Return the ids of the interrupts whose answers an earlier attempt has used, to come to the next interrupt."""
        found = [dumped for task, dumped in self._asked if task in self._asked_again]
        return {one.id for dumped in found for one in self.serde.loads_typed(dumped)}

    def replace(self, thread: str, channel: str, value: Any) -> None:
        """Replace a value of the newest checkpoint, for `dump`."""
        body, _, _ = self.storage[thread][""][self.find_newest(thread)]
        version = self.serde.loads_typed(body)["channel_versions"][channel]
        self.blobs[thread, "", channel, version] = self.serde.dumps_typed(value)

    def dump(self, thread: str, tasks: Iterable[str]) -> bytes:
        """Return the state to go on from: the last checkpoint of the graph, and those of subgraphs that keep their own.

        Of other subgraphs, only those of nodes that are not finished, by the ids of their tasks. Raises AgentError if it
        is too large to keep.
        """
        open_tasks = set(tasks)
        changes: list[Change] = []
        for namespace, checkpoints in self.storage[thread].items():
            _, _, task = namespace.partition("|")[0].partition(":")
            if checkpoints and (not task or task in open_tasks):
                changes += self._dump_checkpoint(thread, namespace, max(checkpoints))
        dumped = msgspec.msgpack.encode(changes)
        _check_size(len(dumped), self._measure(thread), is_first=not self._base)
        return dumped

    def _measure(self, thread: str) -> dict[str, int]:
        """Return the bytes of each key of the graph's own state."""
        return {at[2]: size for at, size in self._sizes.items() if at[:2] == (thread, "")}

    def _shorten(self, kind: str, value: bytes) -> Dumped:
        """Return a value as it is kept with the conversation: if it is large, without the files in its messages."""
        if len(value) <= int(conf.MEMORY_MAX_BYTES) // 2:
            return kind, value
        return self.serde.dumps_typed(drop_files(self.serde.loads_typed((kind, value))))

    def _dump_checkpoint(self, thread: str, namespace: str, checkpoint: str) -> Iterator[Change]:
        body, metadata, _ = self.storage[thread][namespace][checkpoint]
        versions = self.serde.loads_typed(body)["channel_versions"]
        blobs = {
            (channel, version): self.blobs.get((thread, namespace, channel, version))
            for channel, version in versions.items()
        }
        kept = {key: self._shorten(*blob) for key, blob in blobs.items() if blob}
        values = [Value(*key, kind, value, 0, b"") for key, (kind, value) in kept.items()]
        yield Put(thread, namespace, checkpoint, None, body, metadata, values)
        for (task, index), found in self.writes[thread, namespace, checkpoint].items():
            _, channel, (kind, value), path = found
            write = (index, channel, kind, value)
            yield Written(thread, namespace, checkpoint, task, path, [write])

    # --- changes ------------------------------------------------------------------------------

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint. Raises AgentError if the state is too large to keep, so that no further work is paid for."""
        where = config["configurable"]
        thread, namespace = where["thread_id"], where.get("checkpoint_ns", "")
        body: dict[str, Any] = {**checkpoint}
        given = body.pop("channel_values")

        def make() -> Put:
            values, sizes = [], self._measure(thread)
            for channel, version in new_versions.items():
                kind, value = (
                    self._pack(channel, given[channel]) if channel in given else ("empty", b"")
                )
                old = self._newest.get((thread, namespace, channel), b"")
                values.append(Value(channel, version, kind, *_compare(old, value)))
                sizes[channel] = len(self._shorten(kind, value)[1])
            if not namespace:
                _check_size(sum(sizes.values()), sizes, is_first=not self._base)
            return Put(
                thread,
                namespace,
                checkpoint["id"],
                where.get("checkpoint_id"),
                self.serde.dumps_typed(body),
                self.serde.dumps_typed(get_checkpoint_metadata(config, metadata)),
                values,
            )

        # Between two steps of the whole graph no node is at work; beside those of a subgraph another one may be.
        goes_on = _goes_on(checkpoint)
        parks = goes_on and not namespace
        name = await self._keep(make, lambda node: node.startswith(namespace), parks=parks)
        if goes_on and namespace:
            await self._turn._journal.admit(name, parks=False)  # noqa: SLF001 - private to agents
        found = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint["id"]}
        return {"configurable": found}

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a node has written."""
        where = config["configurable"]

        def make() -> Written:
            dumped = [
                (WRITES_IDX_MAP.get(channel, n), channel, *self._pack(channel, value))
                for n, (channel, value) in enumerate(writes)
            ]
            namespace, checkpoint = where.get("checkpoint_ns", ""), where["checkpoint_id"]
            return Written(where["thread_id"], namespace, checkpoint, task_id, task_path, dumped)

        await self._keep(make, lambda node: task_id in node)

    def _pack(self, channel: str, value: Any) -> Dumped:
        """Return a value as it is stored. If it cannot be, the log of the run says so: LangGraph may hide the error."""
        try:
            return self.serde.dumps_typed(value)
        except Exception as fault:
            if channel not in self._unfit:
                self._unfit.add(channel)
                said = 'The value of "%s" cannot be kept in a checkpoint: %s. The task fails.'
                logger.error(said, channel, str(fault) or type(fault).__name__)  # noqa: TRY400 - the run has its trace
            raise

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove all of a thread."""
        await self._keep(lambda: Deleted(thread_id), lambda _: False)

    def put(self, *arguments: Any, **named: Any) -> RunnableConfig:
        """Store a checkpoint, for a graph that is invoked in a thread."""
        stored: RunnableConfig = self._wait(self.aput(*arguments, **named))
        return stored

    def put_writes(self, *arguments: Any, **named: Any) -> None:
        """Store what a node has written, for a graph that is invoked in a thread."""
        self._wait(self.aput_writes(*arguments, **named))

    def delete_thread(self, thread_id: str) -> None:
        """Remove all of a thread."""
        self._wait(self.adelete_thread(thread_id))

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        if is_running_here(self._loop):
            work.close()
            raise RuntimeError("an asynchronous node awaits graph.ainvoke; invoke would block it")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _keep(
        self, make: Callable[[], Change], belongs: Callable[[str], bool], *, parks: bool = False
    ) -> str:
        """Make a change in a step, after the words before it, and return its name.

        One after the other: a replay has no gaps. `parks`: the run may then wait for a budget.
        """
        async with self._lock:
            await self._output.settle()
            change = make()
            entry = Entry(change, self._base, self._output.take_numbers(belongs))
            stored = base64.b64encode(msgspec.msgpack.encode(entry)).decode()
            if len(stored) > MAX_STEP_BYTES:
                raise AgentError(
                    f"This message is too large for this agent: a step of it has {len(stored)} bytes, "
                    f"with files, and may have {MAX_STEP_BYTES}."
                )

            async def take() -> str:
                return stored

            self._count += 1
            name, journal = f"checkpoint {self._count}", self._turn._journal  # noqa: SLF001 - private to agents
            await DurableStep(journal, self._loop, name, take, is_done=True)
            if parks:
                await journal.admit(name)
            self._output.tell_calls(belongs)
            self._apply(change)
            return name

    def _apply(self, change: Change) -> None:
        match change:
            case Put(thread, namespace, checkpoint, parent, body, metadata, values):
                for value in values:
                    at = (thread, namespace, value.channel)
                    whole = _restore(self._newest.get(at, b""), value)
                    self._newest[at] = whole
                    self._sizes[at] = len(self._shorten(value.kind, whole)[1])
                    self.blobs[*at, value.version] = (value.kind, whole)
                self.storage[thread][namespace][checkpoint] = (body, metadata, parent)
            case Written(thread, namespace, checkpoint, task, path, writes):
                kept = self.writes[thread, namespace, checkpoint]
                for index, channel, kind, stored in writes:
                    if index < 0 or (task, index) not in kept:
                        kept[task, index] = (task, channel, (kind, stored), path)
            case Deleted(thread):
                super().delete_thread(thread)


def _list_interrupts(change: Change) -> list[tuple[str, Dumped]]:
    """Return the interrupts of a change, each with its task."""
    writes = change.writes if isinstance(change, Written) else ()
    task = change.task if isinstance(change, Written) else ""
    return [(task, (kind, value)) for _, channel, kind, value in writes if channel == INTERRUPT]


def _check_size(size: int, sizes: Mapping[str, int], *, is_first: bool) -> None:
    """Check that a state can be kept; `sizes` are those of its keys. Raises AgentError.

    `is_first`: the conversation had no state before, so a new one would not help.
    """
    if size > (most := int(conf.MEMORY_MAX_BYTES)):
        key = max(sizes, key=lambda key: sizes[key])
        what, advice = "This conversation has become", " Please begin a new conversation."
        if is_first:
            what, advice = "This message is", ""
        raise AgentError(
            f"{what} too large for this agent: its state has {size} bytes and may have {most}. "
            f'The largest key is "{key}".{advice}'
        )


async def _refuse_access() -> None:
    raise _NotTaken


def _compare(old: bytes, new: bytes) -> tuple[bytes, int, bytes]:
    """Return a value as `head`, the number of bytes that follow as in the old one, and `tail`.

    The head is the length of a list. Lists grow at their end, so the rest begins as before.
    """
    head, body = _split(new)
    _, before = _split(old)
    low, high = 0, min(len(body), len(before))
    while low < high:
        middle = (low + high + 1) // 2
        if body[:middle] == before[:middle]:
            low = middle
        else:
            high = middle - 1
    return head, low, body[low:]


def _goes_on(checkpoint: Checkpoint) -> bool:
    """Return whether nodes follow a checkpoint: if not, its graph needs no more of a budget. In doubt they do."""
    changed = checkpoint.get("updated_channels")
    return changed is None or any(name.startswith(FOLLOWING) for name in changed)


def _restore(old: bytes, value: Value) -> bytes:
    return value.head + _split(old)[1][: value.kept] + value.tail


def _split(value: bytes) -> tuple[bytes, bytes]:
    """Split a value of MessagePack after the length of an array; others have no head."""
    first = value[0] if value else 0
    length = 1 if first in range(0x90, 0xA0) else {0xDC: 3, 0xDD: 5}.get(first, 0)
    return value[:length], value[length:]
