"""Agents made by `host`, as long as a block lasts, and what a client saw of them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from a2a_frameworks import host
from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, Part, Skill, registry
from a2a_tasks.models import Event, Run
from a2a_tasks.models import Task as TaskRow
from a2a_tasks.protocol.lifecycle import EventKind, assemble
from a2a_tasks.protocol.values import Task
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.usage import sum_by_task
from tests.support.execution.host import Client, listened

__all__ = [
    "CLIENTS",
    "INTERRUPTED",
    "PAY",
    "SKILLS",
    "has_artifacts",
    "has_said",
    "hosted",
    "joined",
    "parts_of",
    "question_of",
    "seen",
    "send_parts",
    "shown",
    "status_text",
    "text_of",
    "trace",
    "usage_of",
]

SKILLS = [Skill("do", "Do", "Does as the test says.", tags=["test"])]
#: A script for the model: it calls a tool that needs the approval of the client.
PAY = 'CALL pay {"amount": 7}\nSAY it is done: $RESULT'
#: Scripts in whose middle an attempt dies, with the last word that it says.
INTERRUPTED = {
    "in its first words": ("SAY one two WAIT three four", "two"),
    "in words after a call": (
        'SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is WAIT $RESULT then',
        "it is",
    ),
    "in words before a call": (
        'SAY first WAIT words + CALL add {"a": 1, "b": 2}\nSAY and last',
        "first",
    ),
}
#: Clients of models, which are closed in the event loop of their test.
CLIENTS: list[Any] = []
_numbers = itertools.count(1)


@contextmanager
def hosted(thing: Any, **attributes: Any) -> Iterator[Agent]:
    """Host a thing."""
    about = {"slug": f"hosted-{next(_numbers)}", **attributes}
    made = host(thing, skills=SKILLS, **about)
    try:
        yield registry._found[made.slug]
    finally:
        registry._found.pop(made.slug, None)
        made.abstract = True  # nobody finds it again among the subclasses


async def seen(client: Client, text: str = "hello", **about: Any) -> list[str]:
    """What the client sees in a stream, one line an event."""
    events = await listened(await client.stream(text, **about))
    return [shown(msgspec.json.decode(event.body)) for event in events]


def shown(body: dict[str, Any]) -> str:
    """An event in one line: `working: text`, `artifact a: text`, `artifact a + text (last)`."""
    if "artifact" in body:
        artifact = body["artifact"]
        sign = " +" if body.get("append") else ":"
        last = " (last)" if body.get("lastChunk") else ""
        return f"artifact {artifact['artifactId']}{sign} {parts_of(artifact)}{last}"
    if "status" in body:
        state = body["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
        message = body["status"].get("message")
        return f"{state}: {parts_of(message)}" if message else state
    return f"message: {parts_of(body)}"


def parts_of(holder: dict[str, Any]) -> str:
    """The contents of parts, joined."""
    contents = ((part.get("text"), part.get("data"), part.get("url")) for part in holder["parts"])
    return " ".join(str(next(c for c in found if c is not None)) for found in contents)


def status_text(task: Task) -> str:
    """The text of the status."""
    return parts_of(msgspec.json.decode(task.status.message)) if task.status.message else ""


def text_of(task: Any) -> list[str]:
    """The artifacts of a task, each as its text."""
    bodies = [msgspec.json.decode(body) for body in task.artifacts or ()]
    return ["".join(part.get("text", "") for part in body["parts"]) for body in bodies]


async def joined(task: str) -> list[str]:
    """The artifacts for a client that has read every event of a task, each as its text."""
    pieces = Event.objects.filter(task__public_id=task, kind=EventKind.ARTIFACT).order_by("number")
    bodies = await run_in_thread(list, pieces.values_list("body", flat=True))
    whole = map(msgspec.json.decode, assemble(bodies).values())
    return ["".join(part.get("text", "") for part in artifact["parts"]) for artifact in whole]


def question_of(task: Any) -> list[Any]:
    """The parts of the question of a task: its text, what it is about, its form."""
    parts = msgspec.json.decode(task.status.message or b"")["parts"]
    return [part.get("text", part.get("data")) for part in parts]


async def usage_of(task: Any) -> dict[str, Any]:
    """The usage of a task by model."""
    row = await run_in_thread(TaskRow.objects.get, public_id=task.id)
    found: dict[str, Any] = msgspec.to_builtins(
        (await run_in_thread(sum_by_task, [row.pk]))[row.pk]
    )
    return found


async def trace() -> str:
    """The trace of the newest run."""
    return (await run_in_thread(Run.objects.latest, "pk")).error


async def send_parts(client: Client, *parts: Part, **about: Any) -> Any:
    """The task of a message with these parts, once it has settled."""
    request = client.request("", **about)
    message = msgspec.structs.replace(request.message, parts=parts)
    return await TABLE["SendMessage"](dataclasses.replace(request, message=message), client.call())


async def has_artifacts(client: Client, task: str) -> bool:
    """Has the task a first artifact?"""
    return bool((await client.get(task)).artifacts)


async def has_said(client: Client, task: str, text: str) -> bool:
    """Is the text among the artifacts?"""
    return text in "".join(text_of(await client.get(task)))
