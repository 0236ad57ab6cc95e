"""The example `openai_agents_chat`, in a host, with the scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module, reload
from typing import Any

import msgspec
import pytest

from a2a_tasks.agents import Agent, registry
from tests.model_server import serving_model
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import status_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.quick_on("sqlite")]


@pytest.fixture
async def agent(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Agent]:
    """The agent of the app, as a host finds it when it starts."""
    with serving_model() as model:
        monkeypatch.setenv("CHAT_URL", model.url)
        app: Any = reload(import_module("examples.openai_agents_chat.agents"))
        found = registry._found["openai-chat"]
        yield found
        await app.client.close()
    del registry._found["openai-chat"]
    type(found).abstract = True


def said_in(task: Any) -> str:
    """The text of the artifacts."""
    bodies = map(msgspec.json.decode, task.artifacts or ())
    return "".join(part["text"] for body in bodies for part in body["parts"])


async def test_it_is_in_order(agent: Agent) -> None:
    assert list(agent.check()) == []


async def test_it_chats_and_sends_mail_if_it_may(agent: Agent) -> None:
    async with hosting():
        client = Client(agent)
        assert said_in(await client.send("hello")) == "You said: hello"
        script = 'CALL send_mail {"to": "Bob", "text": "hi"}\nSAY $RESULT'
        asked = await client.send(script)
        assert status_text(asked).startswith('May I call send_mail(to="Bob", text="hi")? Please')
        done = await client.send("yes", task_id=asked.id)
        assert (said_in(done), done.status.state.word) == ("sent to Bob: hi", "completed")


async def test_it_may_run_in_a_process_of_its_own(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    monkeypatch.setenv("A2A_APPS", "examples.openai_agents_chat")
    monkeypatch.setattr(type(agent), "runs_in", "process")
    async with hosting():
        client = Client(agent)
        first = await client.send('CALL roll_dice {"sides": 1}\nSAY a $RESULT for $USERS')
        assert said_in(first) == "a 1 for 1"
        second = await client.send("SAY $USERS", context_id=first.context_id)
        assert said_in(second) == "2"
