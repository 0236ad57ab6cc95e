"""The example `chat`, with the scripted model on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from a2a_tasks.agents import Journal
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.testing import converse
from examples.chat import agents
from tests.model_server import ModelServer, serving_model
from tests.support.examples.turns import shown_text


@pytest.fixture
def model(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model that the example may call."""
    settings.A2A_FETCH_ALLOW_HTTP, settings.A2A_FETCH_ALLOW_NETWORKS = "1", "127.0.0.1"
    with serving_model() as served:
        monkeypatch.setattr(agents, "URL", served.url)
        yield served


async def test_plans_answers_and_knows_what_was_said(model: ModelServer) -> None:
    first, second = await converse(agents.Chat, "SAY a plan\nSAY an answer", "SAY p\nSAY $USERS")
    assert first.state is TaskState.COMPLETED
    assert first.emissions[0].parts[0].text == "a plan"
    assert shown_text(first.artifacts["answer"]).replace("\n", "") == "an answer"
    assert second.artifacts["answer"][0].text == "2"
    assert len(model.of("finished")) == 4


async def test_does_not_plan_again_after_its_process_died(model: ModelServer) -> None:
    [answer] = await converse(agents.Chat, "hello", journal=Journal({"plan": "old"}), attempt=2)
    assert answer.emissions[0].parts[0].text == "old"
    assert len(model.exchanges) == 1


@pytest.mark.parametrize("mishap", ["FAIL 500", "GARBAGE"])
async def test_says_in_words_that_the_model_does_not_answer(
    model: ModelServer, mishap: str
) -> None:
    [answer] = await converse(agents.Chat, mishap)
    assert answer.state is TaskState.FAILED
    assert answer.text == "The model cannot answer. Please try again later."


async def test_says_that_a_private_address_is_not_allowed(
    model: ModelServer, settings: Settings
) -> None:
    settings.A2A_FETCH_ALLOW_NETWORKS = ""
    [answer] = await converse(agents.Chat, "hello")
    assert answer.text.startswith("CHAT_URL: The URL must ")


def test_is_in_order() -> None:
    assert list(agents.Chat().check()) == []
