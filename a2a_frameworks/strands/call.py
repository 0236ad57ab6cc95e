"""One run of an agent of Strands for a turn: its memory, its interrupts, and its errors in words for people."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import aclosing
from typing import Any, cast
from weakref import WeakKeyDictionary

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

from a2a_frameworks.shared.message_store import FileContent, read_parts
from a2a_frameworks.shared.model_call import ErrorText
from a2a_frameworks.shared.questions import Field, ask_value
from a2a_frameworks.shared.step_call import StepCall
from a2a_frameworks.strands.steps import STEPS, add_steps
from a2a_tasks.agents.emission import Emission

__all__ = ["StrandsCall", "find_unfit"]

WORDS = (
    (ModelThrottledException, ErrorText.BUSY),
    (ContextWindowOverflowException, ErrorText.TOO_LONG),
    (MaxTokensReachedException, ErrorText.UNFIT),
)
#: For each agent, a lock (it does one thing at a time), and its state before any turn.
_idle: WeakKeyDictionary[Agent, tuple[asyncio.Lock, dict[str, Any]]] = WeakKeyDictionary()


class StrandsCall(StepCall):
    """An agent at work for a turn."""

    key = "strands"
    _source: Agent
    _work: asyncio.Task[AgentResult]
    #: The messages of the run, and the state after it.
    _new: list[Any]
    _state: dict[str, Any]

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        await self.begin_steps()
        kept = await self._turn.conversation.memory.get(self.key, {})
        if self._store.waiting:
            kept = self._store.waiting["state"]
        state = {**kept, "messages": await self._store.read()}
        if answer is None:
            prompt = [_make_block(part) for part in await read_parts(self._turn)]
        else:
            prompt = [self._answer(one, answer[one["id"]]) for one in self.asked]
        return self._run(decode_bytes_values(state), prompt)

    def _answer(self, asked: Mapping[str, Any], answer: Any) -> dict[str, Any]:
        given = self.decide(asked, answer) if "tool" in asked else answer
        return {"interruptResponse": {"interruptId": asked["interrupt"], "response": given}}

    async def _run(self, state: dict[str, Any], prompt: list[Any]) -> AgentResult:
        agent = self._source
        add_steps(agent)
        if agent not in _idle:
            _idle[agent] = asyncio.Lock(), agent.take_snapshot(preset="session").data
        lock, fresh = _idle[agent]
        messages = [*fresh["messages"], *state["messages"]]
        known = {message.get("tracking_id") for message in messages}
        state = {**fresh, **state, "messages": messages}
        async with lock:
            agent.load_snapshot(Snapshot("agent", SNAPSHOT_SCHEMA_VERSION, state, {}))
            invocation = {STEPS: self._steps, "turn": self._turn}
            events = agent.stream_async(prompt, invocation_state=invocation)
            said: dict[str, Any] = {}
            async with aclosing(cast("Any", events)):
                async for event in events:
                    said = event
            after = agent.take_snapshot(preset="session").data
        self._new = [one for one in after.pop("messages") if one.get("tracking_id") not in known]
        self._state = encode_bytes_values(after)
        result: AgentResult = said["result"]
        return result

    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error."""
        cause: BaseException | None = fault
        while cause is not None:
            for kind, words in WORDS:
                if isinstance(cause, kind):
                    return words
            cause = cause.__cause__
        return super().find_error_text(fault)

    def make_field(self, asked: Mapping[str, Any]) -> Field:
        """Return the field for an interrupt: the approval of a call, or what the agent wants to know."""
        if "tool" in asked:
            return super().make_field(asked)
        value = asked["value"]
        schema = value.get("schema") if isinstance(value, dict) else None
        return ask_value(asked["id"], value, schema)

    async def conclude(self) -> list[Emission]:
        """Keep the messages and the state of a run that is over; return its question, or its structured result."""
        result = self._work.result()
        new = encode_bytes_values(self._new)
        if result.stop_reason == "interrupt":
            asked = [_describe(one, self._new) for one in result.interrupts or ()]
            return self.ask(new, asked, state=self._state)
        await self._store.append(new)
        self._state.pop("interrupt_state")
        await self._turn.conversation.memory.set(self.key, self._state)
        return self.make_result(result.structured_output)


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
    return {"id": interrupt.id, "interrupt": interrupt.id, "value": interrupt.reason}


def find_unfit(agent: Agent) -> str:
    """Return why an agent cannot be hosted; empty = it can."""
    if agent._session_manager is not None:  # noqa: SLF001 - it has no other name
        return "has a session manager; the host keeps its messages itself"
    return ""
