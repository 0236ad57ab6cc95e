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

from a2a_frameworks.adk.steps import ModelRefused, copy_agent, read_text
from a2a_frameworks.shared.message_store import FileContent, read_parts
from a2a_frameworks.shared.model_call import ErrorText
from a2a_frameworks.shared.questions import Field, ask_result
from a2a_frameworks.shared.status_words import find_status_words
from a2a_frameworks.shared.step_call import StepCall
from a2a_tasks.agents.emission import Emission

__all__ = ["AdkCall"]

#: The call by which the framework asks for the confirmation of another.
CONFIRM = "adk_request_confirmation"
WORDS = (
    (ModelRefused, ErrorText.REFUSED),
    (LlmCallsLimitExceededError, ErrorText.TOO_MUCH),
)


class AdkCall(StepCall):
    """An agent at work for a turn."""

    key = "adk"
    _source: BaseAgent
    _work: asyncio.Task[Session]
    #: The number of events before the run.
    _known = 0

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        await self.begin_steps()
        if answer is None:
            parts = [_make_part(part) for part in await read_parts(self._turn)]
        else:
            parts = [self._answer(one, answer[one["id"]]) for one in self.asked]
        return self._run(types.Content(role="user", parts=parts))

    def _answer(self, asked: Mapping[str, Any], answer: Any) -> types.Part:
        id_, name = asked["id"], asked["tool"]
        response = answer if isinstance(answer, dict) else {"result": answer}
        if "confirm" in asked:
            id_, name = asked["confirm"], CONFIRM
            response = {"confirmed": self.decide(asked, answer)}
        return types.Part(
            function_response=types.FunctionResponse(id=id_, name=name, response=response)
        )

    async def _run(self, message: types.Content) -> Session:
        sessions = InMemorySessionService()
        user = {
            "user_id": self._turn.caller.principal or "anonymous",
            "session_id": self._turn.context_id,
        }
        session = await sessions.create_session(app_name=self._agent.slug, **user)
        for kept in await self._store.read():
            await sessions.append_event(session, Event.model_validate_json(json.dumps(kept)))
            self._known += 1
        copied = copy_agent(self._source, self._steps)
        runner = Runner(app_name=self._agent.slug, agent=copied, session_service=sessions)
        config = RunConfig(
            streaming_mode=StreamingMode.SSE if self._agent.streaming else StreamingMode.NONE,
            max_llm_calls=self._agent.max_llm_calls,
        )
        events = runner.run_async(**user, new_message=message, run_config=config)
        async with aclosing(events):
            async for event in events:
                author = copied.find_agent(event.author)
                if not event.partial and not isinstance(author, LlmAgent):
                    await self._say(read_text(event))
        found: Session = await sessions.get_session(app_name=self._agent.slug, **user)
        return found

    async def _say(self, text: str) -> None:
        """Say what an agent without a model says."""
        if text:
            self._output.begin_response()
            await self._output.end_answer(text)

    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error."""
        if isinstance(fault, APIError):
            return find_status_words(fault.code)
        own = (words for kind, words in WORDS if isinstance(fault, kind))
        return next(own, "") or super().find_error_text(fault)

    def make_field(self, asked: Mapping[str, Any]) -> Field:
        """Return the field for the approval of a call, or for the result of a long-running tool."""
        if "confirm" in asked:
            return super().make_field(asked)
        return ask_result(asked["id"], asked["tool"], asked["arguments"])

    async def conclude(self) -> list[Emission]:
        """Keep the events of a run that is over; return its question, if it has one."""
        events = self._work.result().events[self._known :]
        new = [event.model_dump(mode="json", exclude_none=True) for event in events]
        if asked := _list_calls(events):
            return self.ask(new, asked)
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
