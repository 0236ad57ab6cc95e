"""One run of a graph for a turn: its input, its words, its end, and its errors in words for people."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.errors import GraphRecursionError
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt, StateSnapshot, StreamMode

from a2a_frameworks.langgraph.messages import make_emission, make_json, make_part
from a2a_frameworks.langgraph.output import GraphOutput
from a2a_frameworks.langgraph.saver import TurnSaver
from a2a_frameworks.shared.base import resolve
from a2a_frameworks.shared.langchain_words import LANGCHAIN_WORDS
from a2a_frameworks.shared.model_call import (
    ErrorRow,
    ErrorText,
    ModelCall,
    ModelSilent,
    count_artifacts,
)
from a2a_frameworks.shared.questions import FormQuestion, ask_value
from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Chunk, Emission
from a2a_tasks.agents.security import is_shared
from a2a_tasks.protocol.jsontext import write

__all__ = ["GraphCall", "find_unfit"]

#: The key of the state in the memory of the conversation, and of a task that waits.
KEY = "langgraph"
#: Errors of the framework and the words for clients.
WORDS: tuple[ErrorRow, ...] = (
    *LANGCHAIN_WORDS,
    (ModelSilent, ErrorText.SILENT),
    (GraphRecursionError, "This message needs more steps than one message may take."),
)


class GraphCall(ModelCall):
    """A graph at work for a turn."""

    def __init__(self, source: Pregel[Any, Any, Any, Any], turn: Turn, agent: Any) -> None:
        super().__init__(source, turn, agent)
        self._thread = _make_thread(turn, agent)
        self._graph: Pregel[Any, Any, Any, Any]
        #: The question of the task, with the state that waits for its answer; None = it asked none.
        self._waiting: dict[str, Any] | None = turn.memory.get(KEY)
        #: The state of the conversation when the turn began.
        self._kept = b""
        self._saver: TurnSaver
        self._output: GraphOutput
        self._work: asyncio.Task[StateSnapshot]

    def find_question(self) -> FormQuestion | None:
        """Return the question of the interrupts that the task came to before."""
        return _make_question(self._waiting["interrupts"]) if self._waiting else None

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        self._output = GraphOutput(
            await count_artifacts(self._turn),
            self._agent.nodes,
            self._agent.model_seconds,
            self._turn.usage,
        )
        self._saver = TurnSaver(self._turn, self._output)
        self._graph = self._source.copy({"checkpointer": self._saver})
        state = self._waiting["state"] if self._waiting else ""
        return self._run(await self._restore(answer or {}, state))

    async def _restore(self, answers: Mapping[str, Any], waiting: str) -> Any:
        """Restore the state, with the checkpoints of earlier attempts; return the input of this one.

        A task that waited goes on from its own state: the conversation may have gone on without it.
        """
        self._kept = await self._turn.conversation.memory.get(KEY, b"")
        state = base64.b64decode(waiting) if waiting else self._kept
        if state:
            self._saver.load(state, self._thread)
        began = self._saver.find_newest(self._thread)
        await self._saver.replay()
        if self._saver.find_newest(self._thread) != began:
            self._output.count_calls(self._list_new_messages())
            return None  # an earlier attempt has taken the input
        if waiting:
            # answers that an earlier attempt has used are in the checkpoint
            used = self._saver.list_used()
            left = {key: value for key, value in answers.items() if key not in used}
            return Command(resume=left) if left else None
        return await resolve(self._agent.make_input(self._turn))

    @property
    def _config(self) -> Any:
        given = self._agent.make_config(self._turn)
        own = {"thread_id": self._thread, "turn": self._turn}
        return {
            **given,
            "configurable": {**given.get("configurable", {}), **own},
            "callbacks": [*(given.get("callbacks") or ()), self._output],
        }

    async def _run(self, given: Any) -> StateSnapshot:
        """Run the graph. Raises ModelSilent."""
        async with self._output.limit_silence():
            return await self._stream(given)

    async def _stream(self, given: Any) -> StateSnapshot:
        modes: list[StreamMode] = ["custom", *(["messages"] if self._agent.streaming else [])]  # type: ignore[list-item]
        # Words of models come by their callbacks: the stream may have more than the checkpoint waits for.
        async for part in self._graph.astream(
            given,
            self._config,
            context=await resolve(self._agent.make_context(self._turn)),
            stream_mode=modes,
            subgraphs=True,
            durability="sync",
            version="v2",
        ):
            if part["type"] == "custom":
                self._output.put(make_emission(self._turn, part["data"]))
        return await self._graph.aget_state(self._config)

    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error; empty = it has none, and is the graph's own."""
        unfit = ErrorText.UNFIT if self._output.came_from_model(fault) else ""
        return next((words for kinds, words in WORDS if isinstance(fault, kinds)), unfit)

    async def conclude(self) -> list[Emission]:
        """Keep the state of a run that is over; return its question, or its result. Raises AgentError."""
        state = self._work.result()
        base = hashlib.sha256(self._kept).hexdigest()
        if not state.interrupts and self._waiting and self._waiting["base"] != base:
            self._join_messages(state, self._waiting["known"])
        kept = self._saver.dump(self._thread, (task.id for task in state.tasks))
        if state.interrupts:
            first = {"base": base, "known": [one.id for one in self._read_messages()]}
            self._turn.memory[KEY] = (self._waiting or first) | {
                "state": base64.b64encode(kept).decode(),
                "interrupts": _describe(state.interrupts),
            }
            return [_make_question(self._turn.memory[KEY]["interrupts"]).ask(self._turn)]
        if state.next:
            raise RuntimeError(
                f"the graph stopped before {', '.join(state.next)}; it has no interrupt"
            )
        await self._turn.conversation.memory.set(KEY, kept)
        self._turn.memory.pop(KEY, None)
        if not self._agent.output_key:
            return []
        part = make_part(state.values[self._agent.output_key])
        return [Chunk(artifact_id="result", parts=(part,), last=True)]

    def _list_new_messages(self) -> list[BaseMessage]:
        """Return the messages that earlier attempts of the turn have added."""
        state = self._waiting["state"] if self._waiting else ""
        before = self._read_messages(base64.b64decode(state) if state else self._kept)
        known = {one.id for one in before}
        return [one for one in self._find_messages(self._saver) if one.id not in known]

    def _read_messages(self, kept: bytes | None = None) -> list[BaseMessage]:
        """Return the messages in a kept state: by default, of the conversation when the turn began."""
        kept = self._kept if kept is None else kept
        if not kept:
            return []
        saver = TurnSaver(self._turn, self._output)
        saver.load(kept, self._thread)
        return self._find_messages(saver)

    def _find_messages(self, saver: TurnSaver) -> list[BaseMessage]:
        found = saver.get_tuple({"configurable": {"thread_id": self._thread}})
        values = found.checkpoint["channel_values"] if found else {}
        return [one for one in values.get("messages", ()) if isinstance(one, BaseMessage)]

    def _join_messages(self, state: StateSnapshot, known: Collection[str]) -> None:
        """Add the messages of the task to those of tasks that ended while it waited."""
        channel = self._graph.channels.get("messages")
        if isinstance(channel, BinaryOperatorAggregate):
            new = [one for one in state.values["messages"] if getattr(one, "id", "") not in known]
            joined = channel.operator(self._read_messages(), new)
            self._saver.replace(self._thread, "messages", joined)


def _make_thread(turn: Turn, agent: Any) -> str:
    """Return the id of the conversation for the graph: no client can choose it."""
    caller = turn.caller
    owner = "*" if is_shared(agent) and caller.tenant else caller.principal
    names = [caller.tenant, owner, agent.slug, turn.context_id]
    return hashlib.sha256(write(names)).hexdigest()


def _describe(interrupts: Sequence[Interrupt]) -> list[dict[str, Any]]:
    """Return interrupts as JSON, which is kept until they are answered."""
    return [
        {"id": one.id, "value": make_json(one.value)}
        | ({"schema": make_json(one.response_schema)} if one.response_schema else {})
        for one in interrupts
    ]


def _make_question(interrupts: Sequence[Mapping[str, Any]]) -> FormQuestion:
    """Return the question that interrupts ask. Any value answers one, unless it has a schema."""
    about = [{"id": one["id"], "value": one["value"]} for one in interrupts]
    fields = [ask_value(one["id"], one["value"], one.get("schema")) for one in interrupts]
    return FormQuestion(fields, {"interrupts": about})


def find_unfit(graph: Pregel[Any, Any, Any, Any], *, has_own_input: bool) -> str:
    """Return why a graph cannot be hosted; empty = it can."""
    if graph.interrupt_before_nodes or graph.interrupt_after_nodes:
        return "has interrupt_before or interrupt_after; a node calls interrupt() instead"
    if any(isinstance(channel, DeltaChannel) for channel in graph.channels.values()):
        return "has a DeltaChannel, which needs all earlier checkpoints"
    if not has_own_input and "messages" not in graph.channels:
        return "has no messages in its state; override make_input"
    return ""
