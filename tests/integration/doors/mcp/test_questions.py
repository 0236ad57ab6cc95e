"""Questions to the published client of the new era: it asks its user, and repeats the call with the answer."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from a2a_doors.mcp import questions
from a2a_tasks.access.api_keys import issue
from a2a_tasks.agents import Turn
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.integration.doors.mcp.raw import FORM, ask
from tests.support.agents_under_test import playing

pytestmark = pytest.mark.django_db
TRIP = {"to": "Rome", "people": 2, "sure": True}


class User:
    """It answers what the client asks, one answer after the other, and remembers the questions."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[Any] = []
        self._answers = list(answers)

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        """Answer a question; None declines."""
        self.asked.append(params)
        answer = self._answers.pop(0)
        if answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=answer)


async def call(site: str, message: str, user: User, agent: str = "demo") -> Any:
    """The result of a call whose questions the user answers."""
    async with Client(f"{site}/mcp", elicitation_callback=user) as client:
        return await client.call_tool(agent, {"message": message})


async def test_the_answer_of_the_user_comes_to_the_task_that_asked(site: str) -> None:
    user = User({"answer": "Ada"})
    result = await call(site, "ask Who are you?", user)
    assert result.content[0].text == "Ada"
    assert [each.message for each in user.asked] == ["Who are you?"]
    assert await run_in_thread(Task.objects.count) == 1


async def test_a_form_with_a_fault_is_asked_again_with_the_words(site: str) -> None:
    user = User({"to": "Paris", "people": 2, "sure": True}, TRIP)
    result = await call(site, "form", user)
    assert result.structured_content["data"] == TRIP
    first, second = user.asked
    assert first.requested_schema["properties"]["to"]["enum"] == ["Rome", "Oslo", "Lima"]
    assert "Paris" in second.message
    assert second.message.endswith(first.message)


async def test_a_form_that_an_elicitation_cannot_have_is_told_and_answered_by_json(
    site: str,
) -> None:
    form = {
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"type": "integer"}}},
    }

    async def run(turn: Turn) -> Any:
        given = await turn.answer
        yield turn.ask("Which?", form=form) if given is None else str(given["list"])

    user = User({"answer": "[1]"}, {"answer": '{"list": [1, 2]}'})
    with playing(run, slug="lister", default_input_modes=("text/plain", "application/json")):
        result = await call(site, "x", user, "lister")
    assert result.content[0].text == "[1, 2]"
    assert "- list (array, optional)" in user.asked[0].message
    assert list(user.asked[0].requested_schema["properties"]) == ["answer"]


async def test_a_user_that_declines_leaves_the_task_waiting(site: str) -> None:
    result = await call(site, "ask Who?", User(None))
    assert not result.is_error
    assert "To answer, call this tool again with task=" in result.content[0].text
    assert result.meta["a2a-host"]["state"] == "input-required"


async def test_the_state_is_for_its_caller_alone_and_not_for_long(
    site: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, others = [
        {"x-api-key": (await run_in_thread(lambda: issue("test"))).key} for _ in range(2)
    ]
    first = {"name": "demo", "arguments": {"message": "ask Who?"}}
    asked = (await ask("tools/call", first, can=FORM, headers=mine)).json["result"]
    assert asked["resultType"] == "input_required"
    (key,) = asked["inputRequests"]
    replies = {key: {"action": "accept", "content": {"answer": "Ada"}}}
    again = {**first, "requestState": asked["requestState"], "inputResponses": replies}
    for headers, state in ((others, asked["requestState"]), (mine, "forged")):
        refused = await ask(
            "tools/call", {**again, "requestState": state}, can=FORM, headers=headers
        )
        assert refused.json["error"]["code"] == -32602
        assert "requestState" in refused.json["error"]["message"]
    with monkeypatch.context() as later:
        later.setattr(questions, "STATE_SECONDS", -1)
        assert "error" in (await ask("tools/call", again, can=FORM, headers=mine)).json
    for _ in range(2):  # the client may repeat it once more
        done = await ask("tools/call", again, can=FORM, headers=mine)
        assert done.json["result"]["content"][0]["text"] == "Ada"
    assert await run_in_thread(Task.objects.count) == 1


async def test_a_repeated_call_without_an_answer_is_asked_again(site: str) -> None:
    first = {"name": "demo", "arguments": {"message": "ask Who?"}}
    asked = (await ask("tools/call", first, can=FORM)).json["result"]
    again = {**first, "requestState": asked["requestState"], "inputResponses": {}}
    repeated = (await ask("tools/call", again, can=FORM)).json["result"]
    assert repeated["inputRequests"] == asked["inputRequests"]
