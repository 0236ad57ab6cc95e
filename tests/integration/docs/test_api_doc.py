"""Every line of docs/api.md that asks the API is asked, and answered."""

from __future__ import annotations

import json
import re
import shlex
from string import Template
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client

from a2a_console.api import exceptions, pagination, stored
from a2a_console.api.views import describe_api
from a2a_tasks.access import authentication
from a2a_tasks.models import Assignment, Task
from a2a_tasks.protocol.values import TaskState
from tests import ROOT
from tests.support.console.api.rights import RIGHTS
from tests.support.console.api.world import API, key_of, populated, wait

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
LINES = re.findall(r"^curl .+$", PAGE, flags=re.MULTILINE)


@pytest.mark.django_db
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
@pytest.mark.parametrize("line", LINES, ids=lambda line: line.partition("$A")[2][:60].strip('"'))
def test_a_line_is_answered(line: str) -> None:
    authentication.forget()
    world = populated()
    key = key_of(*{scope for scope, _ in RIGHTS.values()})
    if "enable" in line:
        Client().post(  # it was disabled by the line before
            f"{API}/webhooks/receivers/{world.receiver.pk}/disable",
            '{"reason": "x"}',
            content_type="application/json",
            headers={"X-API-Key": key},
        )
    if "ASKING" in line or "waiting" in line:
        wait(world)
    if "waiting" in line:
        Assignment.objects.all().delete()
    if "run-again" in line:
        Task.objects.filter(pk=world.task.pk).update(state=TaskState.FAILED)
    names = {
        "A": API,
        "K": f"X-API-Key: {key}",
        "J": "Content-Type: application/json",
        "TASK": world.task.pk,
        "ASKING": world.task.pk,
        "RUN": world.run.pk,
        "RECEIVER": world.receiver.pk,
        "DEAD": world.delivery.pk,
        "WAITING": world.waiting.pk,
        "PREFIX": world.key.prefix,
    }
    command, silent, *words = shlex.split(Template(line).substitute(names))
    assert (command, silent) == ("curl", "-s")
    *options, url = words
    said = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(text.split(": ", 1) for option, text in said if option == "-H")
    kind = headers.pop("Content-Type", "application/json")
    body = dict(said).get("-d", "")
    verb = dict(said).get("-X", "GET")
    if verb != "GET":
        send = getattr(Client(), verb.lower())
        answer = send(unquote(url), body, content_type=kind, headers=headers)
    else:
        answer = Client().get(unquote(url), headers=headers)
    body = b"".join(answer).decode()
    assert answer.status_code in {200, 201}, body
    if "/export" in line:
        assert str(world.task.pk) in body
    else:
        assert json.loads(body)


def test_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"longer than {stored.LIMIT:,} characters" in PAGE
    assert f"looks at {pagination.WINDOW:,} rows" in PAGE
    assert f"is {pagination.SIZE} unless said (at most {pagination.MAX_SIZE})" in PAGE


def test_every_code_of_a_problem_is_on_the_page() -> None:
    told: Any = exceptions.ProblemSerializer().fields["code"]
    assert [code for code in told.choices if f"`{code}`" not in PAGE] == []


def test_every_status_is_on_the_page() -> None:
    assert [status for status in exceptions.PROBLEMS if str(status) not in PAGE] == []
    assert describe_api()["info"]["title"]
