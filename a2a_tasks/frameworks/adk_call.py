"""One run of an agent of the Agent Development Kit for a turn: its session, its questions, and its errors in words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import aclosing
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.genai import types
from google.genai.errors import APIError

from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Emission
from a2a_tasks.frameworks.adk_steps import ModelRefused, copy_agent, read_text
from a2a_tasks.frameworks.message_store import FileContent, MessageStore, read_parts
from a2a_tasks.frameworks.model_call import ModelCall, ModelSilent, Words, count_artifacts
from a2a_tasks.frameworks.model_steps import ModelSteps
from a2a_tasks.frameworks.output import OutputQueue, make_call, make_result
from a2a_tasks.frameworks.questions import (
    MAX_TITLE_LENGTH,
    Field,
    FormQuestion,
    ask_approval,
    format_call,
    read_decision,
)
from a2a_tasks.frameworks.status_words import find_status_words

__all__ = ["AdkCall"]

#: The key of the events in the conversation, and of a task that waits.
KEY = "adk"
#: The call by which the framework asks for the confirmation of another.
CONFIRM = "adk_request_confirmation"
WORDS = (
    (ModelSilent, Words.SILENT),
    (ModelRefused, Words.REFUSED),
    (LlmCallsLimitExceededError, Words.TOO_MUCH),
)


class AdkCall(ModelCall):
    """An agent at work for a turn."""

    _output: OutputQueue
    _work: asyncio.Task[Session]

    def __init__(self, source: BaseAgent, turn: Turn, agent: Any) -> None:
        self._source, self._turn, self._agent = source, turn, agent
        self._store = MessageStore(turn, KEY)
        self._known = 0

    @property
    def _asked(self) -> list[dict[str, Any]]:
        return self._store.waiting["asked"] if self._store.waiting else []

    def find_question(self) -> FormQuestion | None:
        """Return the question about calls of tools that the task asked before."""
        return _make_question(self._asked) if self._asked else None

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        self._output = OutputQueue(await count_artifacts(self._turn))
        if answer is None:
            parts = [_make_part(part) for part in await read_parts(self._turn)]
        else:
            parts = [self._answer(one, answer[one["id"]]) for one in self._asked]
        return self._run(types.Content(role="user", parts=parts))

    def _answer(self, asked: Mapping[str, Any], answer: Any) -> types.Part:
        name, response = asked["tool"], answer
        if "confirm" in asked:
            decision = read_decision(self._turn, answer)
            name, response = CONFIRM, {"confirmed": decision.approved}
            if not decision.approved:
                refused = decision.message or "It was not approved."
                self._output.put(make_result(asked["id"], refused, error=True))
        elif not isinstance(answer, dict):
            response = {"result": answer}
        id_ = asked.get("confirm", asked["id"])
        return types.Part(
            function_response=types.FunctionResponse(id=id_, name=name, response=response)
        )

    async def _run(self, message: types.Content) -> Session:
        turn, steps = self._turn, ModelSteps(self._turn, self._output, self._agent.model_seconds)
        sessions = InMemorySessionService()
        names: dict[str, Any] = {
            "app_name": self._agent.slug,
            "user_id": turn.caller.principal or "anonymous",
            "session_id": turn.context_id,
        }
        session = await sessions.create_session(**names)
        for kept in await self._store.read():
            event = Event.model_validate_json(json.dumps(kept))
            await sessions.append_event(session, event)
            self._known += 1
        copied = copy_agent(self._source, steps)
        runner = Runner(app_name=names["app_name"], agent=copied, session_service=sessions)
        config = RunConfig(
            streaming_mode=StreamingMode.SSE if self._agent.streaming else StreamingMode.NONE,
            max_llm_calls=self._agent.max_llm_calls,
        )
        about = {"user_id": names["user_id"], "session_id": names["session_id"]}
        events = runner.run_async(**about, new_message=message, run_config=config)
        async with aclosing(events):
            async for event in events:
                author = copied.find_agent(event.author)
                if not event.partial and not isinstance(author, LlmAgent):
                    await self._say(read_text(event))
        found: Session = await sessions.get_session(**names)
        return found

    async def _say(self, text: str) -> None:
        """Say what an agent without a model says."""
        if text:
            self._output.begin_response()
            await self._output.end_answer(text)

    def find_words(self, fault: BaseException) -> str:
        """Return the words for an error."""
        if isinstance(fault, APIError):
            return find_status_words(fault.code)
        for kind, words in WORDS:
            if isinstance(fault, kind):
                return words
        try:
            import openai  # noqa: F401, PLC0415 - LiteLLM asks models with it

            from a2a_tasks.frameworks.openai_words import find_cause_words  # noqa: PLC0415
        except ImportError:
            return ""
        return find_cause_words(fault)

    async def conclude(self) -> list[Emission]:
        """Keep the events of a run that is over; return its question, if it has one."""
        events = self._work.result().events[self._known :]
        new = [event.model_dump(mode="json", exclude_none=True) for event in events]
        if asked := _list_calls(events):
            self._store.wait(new, asked=asked)
            told = [make_call(one["id"], one["tool"], one["arguments"]) for one in asked]
            return [*told, _make_question(asked).ask(self._turn)]
        await self._store.append(new)
        return []


def _make_part(part: str | FileContent) -> types.Part:
    if isinstance(part, str):
        return types.Part(text=part)
    return types.Part.from_bytes(data=part.content, mime_type=part.media_type)


def _list_calls(events: list[Event]) -> list[dict[str, Any]]:
    """Return the calls that wait for the client: those to confirm, and those of long-running tools."""
    found = []
    for event in events:
        for call in event.get_function_calls():
            if call.id in (event.long_running_tool_ids or ()):
                args = call.args or {}
                about: dict[str, Any] = {"id": call.id, "tool": call.name, "arguments": args}
                if call.name == CONFIRM:
                    original = args["originalFunctionCall"]
                    about = {"id": original["id"], "tool": original["name"], "confirm": call.id}
                    about["arguments"] = original.get("args", {})
                found.append(about)
    return found


def _make_question(asked: list[dict[str, Any]]) -> FormQuestion:
    """Return the question about calls of tools."""
    names = ("id", "tool", "arguments")
    return FormQuestion(
        [_ask(one) for one in asked],
        {"calls": [{name: one[name] for name in names} for one in asked]},
    )


def _ask(asked: dict[str, Any]) -> Field:
    if "confirm" in asked:
        return ask_approval(asked["id"], asked["tool"], asked["arguments"])
    text = f"Please answer with the result of {format_call(asked['tool'], asked['arguments'])}."
    schema = {"title": f"Result of {asked['tool']}"[:MAX_TITLE_LENGTH]}
    return Field(asked["id"], text, schema)
