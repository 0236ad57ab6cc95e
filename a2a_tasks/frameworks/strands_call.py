"""One run of an agent of Strands for a turn: its memory, its interrupts, and its errors in words for people."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import aclosing
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic import BaseModel
from strands import Agent
from strands.agent.agent_result import AgentResult
from strands.interrupt import Interrupt
from strands.types._snapshot import SNAPSHOT_SCHEMA_VERSION, Snapshot
from strands.types.exceptions import (
    ContextWindowOverflowException,
    MaxTokensReachedException,
    ModelThrottledException,
)
from strands.types.session import decode_bytes_values, encode_bytes_values
from strands.vended_interventions.hitl import HumanInTheLoop

from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import Chunk, Emission
from a2a_tasks.frameworks.message_store import FileContent, MessageStore, read_parts
from a2a_tasks.frameworks.model_call import ModelCall, Words, count_artifacts
from a2a_tasks.frameworks.model_steps import ModelSteps
from a2a_tasks.frameworks.openai_words import find_cause_words
from a2a_tasks.frameworks.output import OutputQueue, make_call, make_result
from a2a_tasks.frameworks.questions import FormQuestion, ask_approval, ask_value, read_decision
from a2a_tasks.frameworks.strands_steps import STEPS, add_steps

__all__ = ["StrandsCall", "find_unfit"]

#: The key of the messages and of the state in the conversation, and of a task that waits.
KEY = "strands"
WORDS = (
    (ModelThrottledException, Words.BUSY),
    (ContextWindowOverflowException, Words.TOO_LONG),
    (MaxTokensReachedException, Words.UNFIT),
)
#: For each agent, a lock (it does one thing at a time), and its state before any turn.
_idle: WeakKeyDictionary[Agent, tuple[asyncio.Lock, dict[str, Any]]] = WeakKeyDictionary()


class StrandsCall(ModelCall):
    """An agent at work for a turn."""

    _output: OutputQueue
    _work: asyncio.Task[AgentResult]

    def __init__(self, agent: Agent, turn: Turn, model_seconds: float) -> None:
        self._agent, self._turn, self._model_seconds = agent, turn, model_seconds
        self._store = MessageStore(turn, KEY)
        #: The messages of the run, and the state after it.
        self._new: list[Any] = []
        self._state: dict[str, Any] = {}

    @property
    def _asked(self) -> list[dict[str, Any]]:
        return self._store.waiting["asked"] if self._store.waiting else []

    def find_question(self) -> FormQuestion | None:
        """Return the question of the interrupts that the task came to before."""
        return _make_question(self._asked) if self._asked else None

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        self._output = OutputQueue(await count_artifacts(self._turn))
        kept = await self._turn.conversation.memory.get(KEY, {})
        if self._store.waiting:
            kept = self._store.waiting["state"]
        state = {**kept, "messages": await self._store.read()}
        if answer is None:
            prompt = [_make_block(part) for part in await read_parts(self._turn)]
        else:
            prompt = [self._answer(one, answer[one["id"]]) for one in self._asked]
        return self._run(decode_bytes_values(state), prompt)

    def _answer(self, asked: Mapping[str, Any], answer: Any) -> dict[str, Any]:
        if "tool" in asked:
            decision = read_decision(self._turn, answer)
            answer = decision.approved
            if not answer:
                refused = decision.message or "It was not approved."
                self._output.put(make_result(asked["id"], refused, error=True))
        return {"interruptResponse": {"interruptId": asked["interrupt"], "response": answer}}

    async def _run(self, state: dict[str, Any], prompt: list[Any]) -> AgentResult:
        add_steps(self._agent)
        steps = ModelSteps(self._turn, self._output, self._model_seconds)
        if self._agent not in _idle:
            _idle[self._agent] = asyncio.Lock(), self._agent.take_snapshot(preset="session").data
        lock, fresh = _idle[self._agent]
        messages = [*fresh["messages"], *state["messages"]]
        known = {message.get("tracking_id") for message in messages}
        state = {**fresh, **state, "messages": messages}
        async with lock:
            self._agent.load_snapshot(Snapshot("agent", SNAPSHOT_SCHEMA_VERSION, state, {}))
            invocation = {STEPS: steps, "turn": self._turn}
            events = self._agent.stream_async(prompt, invocation_state=invocation)
            said: dict[str, Any] = {}
            async with aclosing(cast("Any", events)):
                async for event in events:
                    said = event
            after = self._agent.take_snapshot(preset="session").data
        self._new = [one for one in after.pop("messages") if one.get("tracking_id") not in known]
        self._state = encode_bytes_values(after)
        result: AgentResult = said["result"]
        return result

    def find_words(self, fault: BaseException) -> str:
        """Return the words for an error."""
        cause: BaseException | None = fault
        while cause is not None:
            for kind, words in WORDS:
                if isinstance(cause, kind):
                    return words
            cause = cause.__cause__
        return find_cause_words(fault)

    async def conclude(self) -> list[Emission]:
        """Keep the messages and the state of a run that is over; return its question, or its structured result."""
        result = self._work.result()
        new = encode_bytes_values(self._new)
        if result.stop_reason == "interrupt":
            asked = [_describe(one, [*self._new]) for one in result.interrupts or ()]
            self._store.wait(new, asked=asked, state=self._state)
            calls = [one for one in asked if "tool" in one]
            told = [make_call(one["id"], one["tool"], one["arguments"]) for one in calls]
            return [*told, _make_question(asked).ask(self._turn)]
        await self._store.append(new)
        self._state.pop("interrupt_state")
        await self._turn.conversation.memory.set(KEY, self._state)
        output = result.structured_output
        if not isinstance(output, BaseModel):
            return []
        part = data(output.model_dump(mode="json"))
        schema = type(output).model_json_schema(mode="serialization")
        name = self._output.name_artifact("result")
        return [Chunk(artifact_id=name, parts=(part,), last=True, metadata={"schema": schema})]


def _make_block(part: str | FileContent) -> dict[str, Any]:
    """Return a part of a message as a block of content."""
    if isinstance(part, str):
        return {"text": part}
    kind, _, form = part.media_type.partition("/")
    source = {"bytes": part.content}
    if kind in ("image", "video"):
        return {kind: {"format": form, "source": source}}
    suffix = part.name.rpartition(".")[2]
    return {"document": {"format": suffix, "name": part.name, "source": source}}


def _describe(interrupt: Interrupt, messages: list[Any]) -> dict[str, Any]:
    """Return an interrupt as JSON; one that is about the approval of a call, with the call."""
    if interrupt.name == HumanInTheLoop.name:
        blocks = (block for message in messages for block in message["content"])
        for use in (block["toolUse"] for block in blocks if "toolUse" in block):
            if f":{use['toolUseId']}:" in interrupt.id:
                about = {"tool": use["name"], "arguments": use["input"]}
                return {"id": use["toolUseId"], "interrupt": interrupt.id, **about}
    asked = {"id": interrupt.id, "interrupt": interrupt.id, "name": interrupt.name}
    return {**asked, "reason": interrupt.reason}


def _make_question(asked: list[dict[str, Any]]) -> FormQuestion:
    """Return the question: about calls that need approval, and what else the agent wants to know."""
    names = ("id", "tool", "arguments")
    calls = [{name: one[name] for name in names} for one in asked if "tool" in one]
    others = [{"id": one["id"], "value": one["reason"]} for one in asked if "tool" not in one]
    fields = [ask_approval(one["id"], one["tool"], one["arguments"]) for one in calls]
    for one in others:
        schema = one["value"].get("schema") if isinstance(one["value"], dict) else None
        fields.append(ask_value(one["id"], one["value"], schema))
    about = {"calls": calls, "interrupts": others}
    return FormQuestion(fields, {key: value for key, value in about.items() if value})


def find_unfit(agent: Any) -> str:
    """Return why an agent cannot be hosted; empty = it can."""
    if not isinstance(agent, Agent):
        return f"is a {type(agent).__name__}, not an agent of Strands"
    if agent._session_manager is not None:  # noqa: SLF001 - it has no other name
        return "has a session manager; the host keeps its messages itself"
    return ""
