"""Files of tasks: by URLs that open, and by nothing of the host's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.models import Artifact, Message, Task
from a2a_tasks.protocol.files import reference
from tests.support.console.admin.rows import make_task
from tests.support.console.api.world import asked, person

pytestmark = pytest.mark.django_db

ID = "0123456789abcdef" * 2
BODY = json.dumps(
    {"parts": [{"url": reference(ID)}, {"text": reference(ID)}]}, separators=(",", ":")
)


def urls(told: Any) -> Iterator[str]:
    """All URLs of parts, in whatever there is."""
    if isinstance(told, dict):
        yield from (told["url"] for _ in [0] if isinstance(told.get("url"), str))
    inside = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    for one in inside:
        yield from urls(one)


def test_parts_have_download_urls_as_in_the_protocol(settings: Settings) -> None:
    task = make_task("t")
    Message.objects.filter(task=task).update(body=BODY)
    Task.objects.filter(pk=task.pk).update(status_message=BODY)
    Artifact.objects.create(task=task, artifact_id="a", position=1, first_event=1, body=BODY)
    operator = person("a2a_tasks.view_task")
    shown = asked(operator, f"/tasks/{task.pk}").json
    events = asked(operator, f"/tasks/{task.pk}/events").json
    found = [*urls(shown), *urls(events)]
    assert len(found) == 4
    for url in found:
        assert url.startswith(f"http://testserver/agents/demo/files/{ID}?expires=")
    settings.A2A_PUBLIC_URL = "https://agents.example.com"
    shown = asked(operator, f"/tasks/{task.pk}").json
    assert next(urls(shown)).startswith("https://agents.example.com/agents/demo/files/")
    assert shown["messages"][0]["body"]["parts"][1] == {"text": reference(ID)}, "a client's words"
