"""What a message may hold: the field that has too much in it is named, and nothing is written."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.models import Task
from a2a_tasks.operations.accept_message import check_limits, check_size
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, Role
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.rows import rows


def asked(
    metadata: dict[str, Any] | None = None, about: dict[str, Any] | None = None, **message: Any
) -> SendMessageRequest:
    """A request with this metadata, and a message with that and more."""
    parts = message.pop("parts", (Part(text="hi"),))
    said = Message(message_id="m", role=Role.USER, parts=parts, metadata=about, **message)
    return SendMessageRequest(message=said, metadata=metadata)


@pytest.fixture(autouse=True)
def small(settings: Settings) -> None:
    """Let little be much."""
    settings.A2A_MAX_PARTS = 2
    settings.A2A_MAX_METADATA_BYTES = 20
    settings.A2A_MAX_METADATA_KEYS = 2
    settings.A2A_MAX_REFERENCES = 2


KEYS, LONG = {"a": 1, "b": 1, "c": 1}, {"a": "x" * 20}
TOO_MUCH = {
    "message.parts": asked(parts=(Part(text="x"),) * 3),
    "message.extensions": asked(extensions=("a", "b", "c")),
    "message.referenceTaskIds": asked(reference_task_ids=("a", "b", "c")),
    "metadata": asked(metadata=KEYS),
    "message.metadata": asked(about=LONG),
    "message.parts[1].metadata": asked(
        parts=(Part(text="x", metadata={"a": 1}), Part(text="x", metadata=KEYS))
    ),
}


@rows("field", TOO_MUCH)
def test_a_field_with_too_much_in_it_is_named(field: str) -> None:
    with pytest.raises(InvalidParams) as found:
        check_limits(TOO_MUCH[field])
    assert [path for path, _ in found.value.violations] == [field]


def test_as_much_as_may_be_is_taken() -> None:
    check_limits(
        asked(
            {"a": 1, "b": 2},
            parts=(Part(text="x"), Part(text="x", metadata={"a": "x" * 12})),
            extensions=("a", "b"),
            reference_task_ids=("a", "b"),
        )
    )


def test_a_message_has_a_size(settings: Settings) -> None:
    settings.A2A_MAX_MESSAGE_BYTES = 10
    check_size(b"x" * 10)
    with pytest.raises(InvalidParams, match="Invalid parameters") as found:
        check_size(b"x" * 11)
    assert found.value.violations == (("message", "must have at most 10 bytes"),)


@pytest.mark.django_db(transaction=True)
async def test_of_a_message_that_is_too_large_nothing_is_written(settings: Settings) -> None:
    settings.A2A_RUNS, settings.A2A_MAX_MESSAGE_BYTES = "local", 1000
    with playing(lambda turn: "done") as agent:
        async with hosting():
            client = Client(agent)
            with pytest.raises(InvalidParams):
                await client.send("x" * 1000)
            assert (await client.send("x")).status.state.word == "completed"
    assert await Task.objects.acount() == 1
