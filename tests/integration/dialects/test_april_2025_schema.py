"""What 0.0 and 0.1 clients hear fits the schema of April 2025 (`april_2025.json`), and so does what they say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.support.bindings.client import Client
from tests.support.dialects.transcript import (
    END,
    NAME,
    Conversation,
    Stage,
    conversations,
    document,
)
from tests.support.rows import rows

SCHEMA = document((Path(__file__).parent / "april_2025.json").read_text(encoding="utf-8"))
RESPONSES = {
    "tasks/send": "SendTaskResponse",
    "tasks/sendSubscribe": "SendTaskStreamingResponse",
    "tasks/get": "GetTaskResponse",
    "tasks/cancel": "CancelTaskResponse",
    "tasks/resubscribe": "TaskResubscriptionResponse",
    "tasks/pushNotification/set": "SetTaskPushNotificationResponse",
    "tasks/pushNotification/get": "GetTaskPushNotificationResponse",
}
#: A request that is answered with one of these need not be one by the schema.
FAULTY = {-32700, -32600, -32601, -32602}
#: What the prose of 0.1 has beside its schema.
PROSE = {"A push config set to null is taken away"}
WRITTEN = [
    told for told in (*conversations("v00"), *conversations("v01")) if told.name not in PROSE
]
MOUNTS = ("a2a/0.0", "a2a/0.1")
MOMENT = "2025-04-09T10:00:00.000Z"
TEXT = {"type": "text", "text": "hi"}
TASK = {"id": "t", "sessionId": "s", "status": {"state": "completed", "timestamp": MOMENT}}


@cache
def validator(definition: str) -> Draft7Validator:
    """Of one definition of the schema; to make it is dearer than to ask it."""
    return Draft7Validator(
        {"$ref": f"#/definitions/{definition}", "definitions": SCHEMA["definitions"]}
    )


def faults(definition: str, given: Any) -> list[str]:
    """What is wrong with a document, by one definition of the schema."""
    return [error.message for error in validator(definition).iter_errors(given)]


def filled(given: Any) -> Any:
    """A document of a transcript, its placeholders filled."""
    if isinstance(given, dict):
        return {key: filled(value) for key, value in given.items()}
    if isinstance(given, list):
        return [filled(item) for item in given]
    if isinstance(given, str):
        return NAME.sub(lambda name: MOMENT if name[1].startswith("at ") else name[1], given)
    return given


def method(request: str) -> str:
    """The method of a request; empty if it is none."""
    try:
        asked = document(request)
    except ValueError:
        return ""
    return str(asked.get("method", "")) if isinstance(asked, dict) else ""


def exchanges(conversation: Conversation) -> Iterator[tuple[str, Any]]:
    """The requests of a conversation, each with every document it is answered with; not those of other dialects."""
    said: dict[str, str] = {}
    ours = True
    for step in conversation.steps:
        if "client" in step or "polls" in step:
            said[step.get("as", "client")] = step["says"]
            ours = (step.get("client") or step["polls"]).endswith(MOUNTS)
        if not ours:
            continue
        texts = [
            *step.get("stream", []),
            *([step["says"]] if "host" in step and "says" in step else []),
        ]
        for text in texts:
            if text != END:
                yield said[step.get("to", "client")], filled(document(text))


def test_the_schema_is_one() -> None:
    Draft7Validator.check_schema(SCHEMA)


@rows("conversation", WRITTEN, str)
def test_every_answer_fits(conversation: Conversation) -> None:
    for request, answer in exchanges(conversation):
        definition = RESPONSES.get(method(request), "ErrorResponse")
        assert not faults(definition, answer), answer


@rows("conversation", WRITTEN, str)
def test_every_request_that_is_served_fits(conversation: Conversation) -> None:
    for request, answer in exchanges(conversation):
        if method(request) and answer.get("error", {}).get("code") not in FAULTY:
            assert not faults("A2ARequest", filled(document(request))), request


@rows("mount", MOUNTS)
@rows("agent", ["demo", "actor", "plain", "exacting"])
@pytest.mark.django_db
async def test_cards_fit(mount: str, agent: str, stage: Stage, client: Client) -> None:
    answer = await client.get(f"/agents/{agent}/{mount}/.well-known/agent.json")
    assert answer.status == 200
    assert not faults("AgentCard", answer.json), answer.json


@rows(
    ("definition", "given"),
    [
        ("Task", {**TASK, "kind": "task"}),
        ("Task", {**TASK, "contextId": "c"}),
        ("Task", {**TASK, "artifacts": [{"artifactId": "a", "parts": [TEXT]}]}),
        ("Task", {**TASK, "status": {"state": "created"}}),
        ("Task", {**TASK, "status": {"state": "rejected"}}),
        (
            "Task",
            {**TASK, "status": {"state": "completed", "timestamp": "2025-04-09T10:00:00+00:00"}},
        ),
        ("Message", {"role": "agent", "parts": []}),
        ("Message", {"role": "agent", "parts": [TEXT], "messageId": "m"}),
        ("Part", {"kind": "text", "text": "hi"}),
        ("Part", {"type": "data", "data": [1]}),
        ("Part", {"type": "file", "file": {"bytes": "QQ==", "uri": "https://example.com"}}),
        ("Part", {"type": "file", "file": {}}),
        ("TaskStatusUpdateEvent", {**TASK, "final": True}),
        ("TaskArtifactUpdateEvent", {"id": "t", "artifact": {"parts": [TEXT]}, "append": True}),
        ("PushNotificationConfig", {"id": "c", "url": "https://example.com"}),
        ("Error", {"code": -32001, "message": "Task not found", "data": {"id": "t"}}),
        ("Error", {"code": -32001, "message": "No such task"}),
        ("Error", {"code": -32602, "message": "Invalid parameters", "data": "id"}),
        (
            "ErrorResponse",
            {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Invalid JSON payload"}},
        ),
    ],
)
def test_what_other_dialects_would_say_does_not_fit(definition: str, given: Any) -> None:
    assert faults(definition, given)
