"""One run of a crew for a turn: its input, the feedback that it wants, and its errors in words for people."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from crewai import Crew, CrewOutput
from crewai.core.providers.human_input import SyncHumanInputProvider, reset_provider, set_provider

from a2a_frameworks.crewai.steps import CrewSteps, CrewStopped, copy_crew
from a2a_frameworks.shared.base import resolve
from a2a_frameworks.shared.model_call import ModelCall, count_artifacts
from a2a_frameworks.shared.openai_words import find_cause_words
from a2a_frameworks.shared.output import OutputQueue
from a2a_frameworks.shared.questions import Field, FormQuestion
from a2a_tasks.agents import Turn, data, text
from a2a_tasks.agents.emission import Chunk, Emission

__all__ = ["CrewCall"]

#: The key in the memory of a task that waits.
KEY = "crewai"
QUESTION = "Is this good? Please answer yes, or what to do better."
#: Answers that are no wish.
CONTENT = ("", "y", "yes", "ok", "true")


class FeedbackProvider(SyncHumanInputProvider):
    """The client as the one who gives feedback on the results of tasks (`human_input=True`)."""

    def __init__(self, given: list[str]) -> None:
        self._given = iter(given)
        #: True if the crew wants feedback that was not given yet.
        self.waits = False

    def handle_feedback(self, formatted_answer: Any, context: Any) -> Any:
        """Let the agent go on with the feedback that was given; the first that was not ends the turn."""
        answer = formatted_answer
        while context.ask_for_human_input:
            feedback = next(self._given, None)
            if feedback is None:
                self.waits = True
                raise CrewStopped
            if feedback.strip(" .!").lower() in CONTENT:
                context.ask_for_human_input = False
            else:
                context.messages.append(context._format_feedback_message(feedback))  # noqa: SLF001 - of the protocol
                answer = context._invoke_loop()  # noqa: SLF001
        return answer


class CrewCall(ModelCall):
    """A crew at work for a turn."""

    _output: OutputQueue
    _work: asyncio.Task[CrewOutput | None]
    _steps: CrewSteps

    def __init__(self, source: Crew, turn: Turn, agent: Any) -> None:
        super().__init__(source, turn, agent)
        #: The memory of a task that waits: its inputs, the feedback, and the results of its steps.
        self._kept: dict[str, Any] = dict(turn.memory.get(KEY, {}))

    def find_question(self) -> FormQuestion | None:
        """Return the question whether the result of a task is good."""
        field = Field("feedback", QUESTION, {"title": QUESTION})
        return FormQuestion([field], {}) if self._kept else None

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        self._output = OutputQueue(await count_artifacts(self._turn))
        if answer is None:
            inputs = dict(await resolve(self._agent.make_input(self._turn)))
            self._kept = {"inputs": inputs, "feedback": [], "steps": {}}
        else:
            given = answer["feedback"]
            given = ("yes" if given else "no") if isinstance(given, bool) else str(given)
            self._kept["feedback"] = [*self._kept["feedback"], given]
        seconds = self._agent.model_seconds
        self._steps = CrewSteps(self._turn, self._output, seconds, self._kept["steps"])
        return self._run()

    async def _run(self) -> CrewOutput | None:
        crew = copy_crew(self._source, self._steps, streams=self._agent.streaming)
        provider = FeedbackProvider(self._kept["feedback"])

        def work() -> Any:
            token = set_provider(provider)
            try:
                return crew.kickoff(dict(self._kept["inputs"]))
            except CrewStopped:
                return None
            finally:
                reset_provider(token)

        try:
            output: CrewOutput | None = await asyncio.to_thread(work)
        finally:
            self._steps.stop()
        if output is None and not provider.waits:
            raise RuntimeError("the crew ended without a result")
        return output

    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error."""
        return find_cause_words(fault)

    async def conclude(self) -> list[Emission]:
        """Return the question of a crew that waits for feedback, or what is left of its result."""
        output = self._work.result()
        if output is None:
            self._turn.memory[KEY] = {**self._kept, "steps": self._steps.taken}
            question = self.find_question()
            assert question is not None  # noqa: S101 - a run has begun
            return [question.ask(self._turn)]
        self._turn.memory.pop(KEY, None)
        whole: Any = output.pydantic or output.json_dict
        if whole is None and output.raw in self._list_texts():
            return []
        name = self._output.name_artifact("result")
        part = text(output.raw)
        if whole is not None:
            part = data(whole if isinstance(whole, dict) else whole.model_dump(mode="json"))
        return [Chunk(artifact_id=name, parts=(part,), last=True)]

    def _list_texts(self) -> list[str]:
        return [one["text"] for one in self._steps.taken.values() if "text" in one]
