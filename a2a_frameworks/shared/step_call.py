"""A run of a framework without durability of its own: its steps, its messages, and the calls that wait for the client."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from a2a_frameworks.shared.message_store import MessageStore
from a2a_frameworks.shared.model_call import ErrorText, ModelCall, ModelSilent, count_artifacts
from a2a_frameworks.shared.model_steps import ModelSteps
from a2a_frameworks.shared.output import OutputQueue, make_call, make_result
from a2a_frameworks.shared.questions import Field, FormQuestion, ask_approval, read_decision
from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import Chunk, Emission

__all__ = ["StepCall"]

#: The members of a call that programs are told.
MEMBERS = ("id", "tool", "arguments", "metadata")


class StepCall(ModelCall):
    """The base class. A question is a list of objects; those with a `tool` are calls of tools."""

    #: The key in the conversation, and in the memory of a task that waits.
    key: str
    _output: OutputQueue
    _steps: ModelSteps

    def __init__(self, source: Any, turn: Turn, agent: Any) -> None:
        super().__init__(source, turn, agent)
        self._store = MessageStore(turn, self.key)

    async def begin_steps(self) -> None:
        """Make the queue of emissions and the steps."""
        self._output = OutputQueue(await count_artifacts(self._turn))
        self._steps = self.make_steps()

    def make_steps(self) -> ModelSteps:
        """Return the steps of the run."""
        return ModelSteps(self._turn, self._output, self._agent.model_seconds)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return what the task asked before."""
        return self._store.waiting["asked"] if self._store.waiting else []

    def find_question(self) -> FormQuestion | None:
        """Return the question that the task asked before; None = it asked none."""
        return self._make_question(self.asked) if self.asked else None

    def make_field(self, asked: Mapping[str, Any]) -> Field:
        """Return the field for one thing that is asked: by default, the approval of a call."""
        return ask_approval(asked["id"], asked["tool"], asked["arguments"])

    def _make_question(self, asked: Sequence[Mapping[str, Any]]) -> FormQuestion:
        calls = [
            {name: one[name] for name in MEMBERS if name in one} for one in asked if "tool" in one
        ]
        others = [{"id": one["id"], "value": one["value"]} for one in asked if "tool" not in one]
        about = {"calls": calls, "interrupts": others}
        fields = [self.make_field(one) for one in asked]
        return FormQuestion(fields, {name: found for name, found in about.items() if found})

    def decide(self, asked: Mapping[str, Any], answer: Any) -> bool:
        """Return whether the client has allowed a call; report one that it has refused."""
        decision = read_decision(self._turn, answer)
        if not decision.approved:
            refused = decision.message or "It was not approved."
            self._output.put(make_result(asked["id"], refused, error=True))
        return decision.approved

    def ask(
        self, new: Sequence[Any], asked: Sequence[dict[str, Any]], **kept: Any
    ) -> list[Emission]:
        """Keep new messages with the task, which waits; return the calls and the question."""
        told = [
            make_call(one["id"], one["tool"], one["arguments"]) for one in asked if "tool" in one
        ]
        return [*told, self.wait(new, asked, **kept)]

    def wait(self, new: Sequence[Any], asked: Sequence[dict[str, Any]], **kept: Any) -> Emission:
        """Keep new messages with the task, which waits; return the question."""
        self._store.wait(new, asked=asked, **kept)
        return self._make_question(asked).ask(self._turn)

    def make_result(self, output: Any) -> list[Emission]:
        """Return the artifact of a structured result; none for others, which are texts that were said."""
        if not isinstance(output, BaseModel):
            return []
        part = data(output.model_dump(mode="json"))
        schema = type(output).model_json_schema(mode="serialization")
        name = self._output.name_artifact("result")
        return [Chunk(artifact_id=name, parts=(part,), last=True, metadata={"schema": schema})]

    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error: of OpenAI's client, if models are asked with it."""
        if isinstance(fault, ModelSilent):
            return ErrorText.SILENT
        if "openai" not in sys.modules:
            return ""
        from a2a_frameworks.shared.openai_words import find_cause_words  # noqa: PLC0415

        return find_cause_words(fault)
