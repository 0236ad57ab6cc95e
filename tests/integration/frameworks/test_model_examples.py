"""The examples of frameworks that ask models, in a host of their own backend, with the scripted model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from a2a_tasks.agents import Agent, registry
from tests.model_server import ModelServer
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import CLIENTS, status_text, text_of
from tests.support.model_frameworks import FRAMEWORKS, LANGGRAPH, PYDANTIC_AI, ModelFramework

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture(params=FRAMEWORKS, ids=repr)
def framework(request: pytest.FixtureRequest) -> ModelFramework:
    """A framework."""
    found: ModelFramework = request.param
    return found


@pytest.fixture
def agent(
    framework: ModelFramework, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Agent]:
    """The agent of the app, as a host finds it when it starts."""
    monkeypatch.setenv("CHAT_URL", model.url)
    name = f"examples.{framework.example}.agents"
    sys.modules.pop(name, None)
    app: Any = import_module(name)
    if framework is LANGGRAPH:
        CLIENTS.extend([app.model.root_client, app.model.root_async_client])
    else:
        CLIENTS.append(app.chat.model.client if framework is PYDANTIC_AI else app.client)
    found = registry._found[framework.slug]
    yield found
    del registry._found[framework.slug]
    type(found).abstract = True


async def test_it_chats_and_sends_mail_if_it_may(agent: Agent) -> None:
    assert list(agent.check()) == []
    async with hosting():
        client = Client(agent)
        assert text_of(await client.send("hello")) == ["You said: hello"]
        asked = await client.send('CALL send_mail {"to": "Bob", "text": "hi"}\nSAY $RESULT')
        assert status_text(asked).startswith("May I ")
        done = await client.send("yes", task_id=asked.id)
    assert (text_of(done), done.status.state.word) == (["sent to Bob: hi"], "completed")


@pytest.mark.thorough
async def test_it_may_run_in_a_process_of_its_own(
    agent: Agent, framework: ModelFramework, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    monkeypatch.setenv("A2A_APPS", f"examples.{framework.example}")
    monkeypatch.setattr(type(agent), "runs_in", "process")
    async with hosting():
        client = Client(agent)
        first = await client.send('CALL roll_dice {"sides": 1}\nSAY a $RESULT for $USERS')
        second = await client.send("SAY $USERS", context_id=first.context_id)
    assert [text_of(task) for task in (first, second)] == [["a 1 for 1"], ["2"]]
