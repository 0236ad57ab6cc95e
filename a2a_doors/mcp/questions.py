"""Questions of agents as elicitations: a form for the user, or a page to which the user is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from django.core import signing

from a2a_doors.mcp.clients import Abilities
from a2a_doors.texts import read_object, show_message, show_parts
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.forms import find_form
from a2a_tasks.protocol.operators import HANDOVER
from a2a_tasks.protocol.values import UNSET, Message, Task, TaskState

__all__ = ["ask", "key_of", "read_reply", "read_state", "seal_state"]

_message = msgspec.json.Decoder(Message).decode
SALT = "a2a_doors.mcp"
#: Seconds for which a question is answered by a repeated call.
STATE_SECONDS = 600
#: The types that a field of an elicitation may have.
SIMPLE = frozenset({"string", "number", "integer", "boolean"})


def key_of(task: Task) -> str:
    """Return the key of the question that a task waits for; empty = it does not wait."""
    waits = task.status.state in {TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED}
    return f"q{_question(task).message_id}" if waits and task.status.message else ""


def _question(task: Task) -> Message:
    assert task.status.message is not None  # noqa: S101 - `key_of` looks
    return _message(task.status.message)


def ask(task: Task, can: Abilities, fault: str = "") -> dict[str, Any]:
    """Return the question of a waiting task as a request to the client, by its key; empty if it cannot be asked so."""
    if not (key := key_of(task)):
        return {}
    question = _question(task)
    params: dict[str, Any]
    if task.status.state is TaskState.AUTH_REQUIRED:
        page = (question.metadata or {}).get(HANDOVER)
        if not (can.url and isinstance(page, Mapping)):
            return {}
        params = {"mode": "url", "message": show_message(question), "url": page["url"]}
    elif can.form:
        params = {"mode": "form", **_make_form(question)}
        params["message"] = "\n\n".join(filter(None, [fault, params["message"]]))
    else:
        return {}
    return {key: {"method": "elicitation/create", "params": params}}


def _make_form(question: Message) -> dict[str, Any]:
    """Return words and schema. A form that an elicitation cannot have is told in words, and answered by one text."""
    form = find_form(question)
    if form is not None and _is_flat(form):
        words = [part for part in question.parts if part.data is UNSET]
        fields = {name: form[name] for name in ("properties", "required") if name in form}
        return {"message": show_parts(words), "requestedSchema": {"type": "object", **fields}}
    answer = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
    }
    return {"message": show_message(question), "requestedSchema": answer}


def _is_flat(form: Mapping[str, Any]) -> bool:
    return all(
        one.get("type") in SIMPLE and not one.keys() & {"$ref", "anyOf", "oneOf", "allOf", "not"}
        for one in form["properties"].values()
    )


def read_reply(task: Task, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of the message that answers the task's question."""
    form = find_form(_question(task))
    if form is not None and _is_flat(form):
        return [{"data": dict(content)}]
    answer = content.get("answer")
    data = read_object(answer) if form is not None and isinstance(answer, str) else None
    if data is not None:
        return [{"data": data}]
    return [{"text": answer if isinstance(answer, str) else json.dumps(answer)}]


def seal_state(task: Task, caller: Caller) -> str:
    """Return the state of a call that waits for an answer; it is for its caller alone."""
    return signing.dumps([task.id, key_of(task), caller.tenant, caller.principal], salt=SALT)


def read_state(state: str, caller: Caller) -> tuple[str, str]:
    """Return the id of the task and the key of the question. Raises InvalidParams for another caller's, or an old one."""
    try:
        task, key, *owner = signing.loads(state, salt=SALT, max_age=STATE_SECONDS)
    except signing.BadSignature:
        owner = []
    if owner != [caller.tenant, caller.principal]:
        raise InvalidParams.field("requestState", "is not valid, or not any more")
    return task, key
