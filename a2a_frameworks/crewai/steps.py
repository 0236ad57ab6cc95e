"""Durability of a crew: each answer of a model and each call of a tool is a step of the turn.

A crew works in a thread; the steps are taken on the event loop.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

from crewai import BaseLLM, Crew
from crewai.events import LLMStreamChunkEvent, crewai_event_bus
from crewai.llms.base_llm import call_stop_override
from crewai.tools import BaseTool
from msgspec import json as msgspec_json
from pydantic import BaseModel, PrivateAttr

from a2a_frameworks.crewai.tools import AgentCrewTool
from a2a_frameworks.shared.model_steps import ModelAnswer, ModelSteps
from a2a_tasks.protocol.jsontext import write

__all__ = ["CrewSteps", "CrewStopped", "copy_crew"]

#: The steps that get the words of the model, and the words so far.
LISTENER: ContextVar[list[Any] | None] = ContextVar("listener", default=None)


class CrewStopped(BaseException):
    """The turn is over, or waits for the client. No handler for errors of agents takes it for one."""


class CrewSteps(ModelSteps):
    """The steps of a crew, for its thread."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._loop = asyncio.get_running_loop()
        self._waits: set[Future[Any]] = set()
        self._calls: Counter[str] = Counter()
        self.stopped = False

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait in the thread of the crew for work on the event loop. Raises CrewStopped."""
        if self.stopped:
            work.close()
            raise CrewStopped
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._waits.add(future)
        try:
            return future.result()
        except BaseException:
            if self.stopped:
                raise CrewStopped from None
            raise
        finally:
            self._waits.discard(future)

    def stop(self) -> None:
        """Let the thread of the crew end at its next call, or at once if it waits for one."""
        self.stopped = True
        for future in tuple(self._waits):
            future.cancel()

    def use_tool(self, tool: BaseTool, arguments: dict[str, Any]) -> Any:
        """Call a tool in a step. Calls have no ids: their arguments and numbers name them."""
        digest = hashlib.sha256(write([tool.name, arguments])).hexdigest()[:12]
        self._calls[digest] += 1

        async def call() -> Any:
            if isinstance(tool, AgentCrewTool):
                return await tool.call(**arguments)
            result = await asyncio.to_thread(tool.run, **arguments)
            return result if isinstance(result, str) else msgspec_json.decode(write(result))

        id_ = f"{digest}-{self._calls[digest]}"
        is_durable = isinstance(tool, AgentCrewTool)
        return self.wait(self.call_tool(id_, tool.name, arguments, call, is_durable=is_durable))


class StepLLM(BaseLLM):
    """A model whose answers are steps."""

    _llm: BaseLLM = PrivateAttr()
    _steps: CrewSteps = PrivateAttr()
    _place: str = PrivateAttr()

    @classmethod
    def wrap(cls, llm: BaseLLM, steps: CrewSteps, place: str, *, streams: bool) -> StepLLM:
        """Return a model whose answers are steps of the agent of that role."""
        made = cls(model=llm.model, stop=llm.stop, temperature=llm.temperature)
        made._llm = llm.model_copy(update={"stream": True} if streams else None)
        made._steps, made._place = steps, place
        return made

    def __getattr__(self, name: str) -> Any:
        """Return what the framework asks models of some kinds about."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
        return getattr(self._llm, name)

    def supports_function_calling(self) -> bool:
        """Return whether the model can call tools."""
        return bool(self._llm.supports_function_calling())

    def supports_stop_words(self) -> bool:
        """Return whether the model ends at stop words."""
        return self._llm.supports_stop_words()

    def get_context_window_size(self) -> int:
        """Return the number of tokens that the model takes."""
        return self._llm.get_context_window_size()

    def call(self, messages: Any, **about: Any) -> Any:
        """Return the answer of the model: its text, its calls of tools, or an object of the wanted type."""
        kind: Any = about.get("response_model")
        ask = functools.partial(self._ask, messages, about)
        stored = self._steps.wait(self._steps.ask_model(ask, place=self._place))
        return kind.model_validate(stored["object"]) if "object" in stored else stored["answer"]

    async def _ask(self, messages: Any, about: dict[str, Any]) -> ModelAnswer:
        llm, heard = _with_own_usage(self._llm), list[Any]([self._steps])
        token = LISTENER.set(heard)
        try:
            with call_stop_override(llm, self.stop_sequences):
                answer = await llm.acall(messages, **about)
        finally:
            LISTENER.reset(token)
        used = llm.get_token_usage_summary()
        stored: dict[str, Any] = {"answer": answer}
        text = "".join(heard[1:])
        if isinstance(answer, BaseModel):
            stored = {"object": answer.model_dump(mode="json")}
        elif isinstance(answer, list):
            stored["answer"] = [_read_call(one) for one in answer]
        else:
            text = str(answer)
        return ModelAnswer(
            stored,
            text,
            self.model,
            used.prompt_tokens,
            used.completion_tokens,
            used.cached_prompt_tokens,
            used.cache_creation_tokens,
        )


def _with_own_usage(llm: BaseLLM) -> BaseLLM:
    """Return a copy that counts from 0. Copies of pydantic share their sums, also with other turns at work."""
    made = llm.model_copy()
    made._token_usage = dict.fromkeys(llm._token_usage, 0)  # noqa: SLF001 - the framework has no call for it
    return made


def _read_call(call: Any) -> Any:
    return call.model_dump(mode="json") if isinstance(call, BaseModel) else call


@crewai_event_bus.on(LLMStreamChunkEvent)
def _hear(_: Any, event: LLMStreamChunkEvent) -> None:
    """Pass on a piece of an answer; the bus calls this where the model is asked."""
    if (listener := LISTENER.get()) is not None:
        text = "" if event.tool_call else event.chunk
        listener.append(text)
        listener[0].hear(text)


class StepTool(BaseTool):
    """A tool whose calls are steps."""

    _tool: BaseTool = PrivateAttr()
    _steps: CrewSteps = PrivateAttr()

    @classmethod
    def wrap(cls, tool: BaseTool, steps: CrewSteps) -> StepTool:
        """Return a tool whose calls are steps."""
        names = ("name", "description", "args_schema", "result_as_answer", "max_usage_count")
        made = cls(**{name: getattr(tool, name) for name in names})
        made._tool, made._steps = tool, steps
        return made

    def _run(self, **arguments: Any) -> Any:
        return self._steps.use_tool(self._tool, arguments)


def copy_crew(crew: Crew, steps: CrewSteps, *, streams: bool) -> Crew:
    """Return a copy of a crew that takes steps."""
    copied = crew.copy()
    copied.stream = False
    managers = [copied.manager_agent] if copied.manager_agent else []
    for agent in [*copied.agents, *managers]:
        agent.llm = StepLLM.wrap(agent.llm, steps, f"{agent.role}/", streams=streams)
        agent.tools = [StepTool.wrap(tool, steps) for tool in agent.tools or ()]
    if isinstance(copied.manager_llm, BaseLLM):
        copied.manager_llm = StepLLM.wrap(copied.manager_llm, steps, "manager/", streams=streams)
    for task in copied.tasks:
        task.tools = [
            tool if isinstance(tool, StepTool) else StepTool.wrap(tool, steps)
            for tool in task.tools or ()
        ]
    return copied
