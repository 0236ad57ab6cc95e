"""One run of the OpenAI Agents SDK for a turn: its answers, and its errors in words for people."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

import openai
from agents import Agent, AgentOutputSchema, AgentOutputSchemaBase, RunResult, RunState
from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRefusalError,
    ModelTimeoutError,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
from agents.items import ToolApprovalItem
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from a2a_frameworks.openai_agents.answer import read_text
from a2a_frameworks.openai_agents.copies import RUNNER, AgentCopies
from a2a_frameworks.openai_agents.session import ConversationSession, make_input
from a2a_frameworks.openai_agents.steps import STEPS, read_arguments
from a2a_frameworks.shared.base import resolve
from a2a_frameworks.shared.model_call import ErrorRow, ErrorText
from a2a_frameworks.shared.openai_words import OPENAI_WORDS, find_api_words
from a2a_frameworks.shared.questions import read_decision
from a2a_frameworks.shared.step_call import StepCall
from a2a_tasks.agents import Part, Turn, data, text
from a2a_tasks.agents.emission import Chunk, Emission

__all__ = ["OpenAIAgentsCall"]

GUARDED = "The agent does not answer this."
#: Other errors and the words for clients, the most particular first.
WORDS: tuple[ErrorRow, ...] = (
    *OPENAI_WORDS,
    (ModelTimeoutError, ErrorText.SILENT),
    (ModelRefusalError, ErrorText.REFUSED),
    (ModelBehaviorError, ErrorText.UNFIT),
    (MaxTurnsExceeded, ErrorText.TOO_MUCH),
    (
        (
            InputGuardrailTripwireTriggered,
            OutputGuardrailTripwireTriggered,
            ToolInputGuardrailTripwireTriggered,
            ToolOutputGuardrailTripwireTriggered,
        ),
        GUARDED,
    ),
)


class OpenAIAgentsCall(StepCall):
    """An agent of the OpenAI Agents SDK at work for a turn."""

    key = "openai_agents"
    _store: ConversationSession
    _steps: AgentCopies

    def __init__(self, source: Agent[Any], turn: Turn, agent: Any) -> None:
        super().__init__(source, turn, agent)
        self._store = ConversationSession(turn, self.key)

    def make_steps(self) -> AgentCopies:
        """Return the steps of the run."""
        return AgentCopies(self._turn, self._output, self._agent)

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        given = await make_input(self._turn) if answer is None else None
        await self.begin_steps()
        return self._run(given, answer or {})

    async def _run(self, given: Any, answer: Mapping[str, Any]) -> RunResult:
        steps = self._steps
        STEPS.set(steps)
        agent = steps.copy_agent(self._source)
        context = await resolve(self._agent.make_context(self._turn))
        if waiting := self._store.waiting:
            given = await RunState.from_json(agent, waiting["state"], context_override=context)
            for item in given.get_interruptions():
                id_ = item.call_id or ""
                if self.decide({"id": id_}, answer[id_]):
                    given.approve(item)
                else:
                    message = read_decision(self._turn, answer[id_]).message
                    given.reject(item, rejection_message=message or None)
        config = steps.copy_config(self._agent.run_config)
        try:
            result: RunResult = await RUNNER.run(
                agent,
                given,
                context=context,
                session=self._store,
                run_config=config,
                max_turns=self._agent.max_turns,
            )
        finally:
            await steps.servers.close()
            if self._agent.run_config is None:
                await config.model_provider.aclose()
        return result

    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error."""
        if isinstance(fault, openai.APIStatusError):
            return find_api_words(fault)
        return next((words for kinds, words in WORDS if isinstance(fault, kinds)), "")

    async def conclude(self) -> list[Emission]:
        """Keep the items of a run that is over; return its question, or its result unless it was said already."""
        result: RunResult = self._work.result()
        if result.interruptions:
            asked = [_describe_call(item) for item in result.interruptions]
            state = result.to_state().to_json(context_serializer=lambda _: {})
            return self.ask((), asked, state=state)
        await self._store.keep()
        output, responses = result.final_output, result.raw_responses
        if output is None or (responses and output == read_text(responses[-1])):
            return []
        if isinstance(output, str):
            part, metadata = text(output), None
        else:
            part, metadata = _describe(output, result.last_agent)
        name = self._output.name_artifact("result")
        return [Chunk(artifact_id=name, parts=(part,), last=True, metadata=metadata)]


def _describe_call(item: ToolApprovalItem) -> dict[str, Any]:
    arguments = read_arguments(item.arguments or "{}")
    tool = item.qualified_name or "a tool"
    return {"id": item.call_id or "", "tool": tool, "arguments": arguments}


def _describe(output: Any, agent: Agent[Any]) -> tuple[Part, dict[str, Any]]:
    """Return an output as data, with the schema of its type: that of the agent, or of the tool whose result it is."""
    wanted = agent.output_type
    if isinstance(wanted, AgentOutputSchemaBase) and not isinstance(wanted, AgentOutputSchema):
        schema = wanted.json_schema()  # the author's own
        return data(to_jsonable_python(output, fallback=str)), {"schema": schema}
    declared: Any = wanted.output_type if isinstance(wanted, AgentOutputSchema) else wanted
    kind: TypeAdapter[Any] = TypeAdapter(declared)
    try:
        kind.validate_python(output, strict=True)
    except ValueError:
        kind = TypeAdapter(type(output))
    schema = kind.json_schema(mode="serialization")
    return data(kind.dump_python(output, mode="json")), {"schema": schema}
