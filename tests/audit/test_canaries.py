"""Canaries: secrets go through everything that leaves an entry, and are in no entry, no export and no log."""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client as Browser
from pytest_django import Settings

from a2a_project.asgi import application
from a2a_tasks.access import callers, denials
from a2a_tasks.access.api_keys import issue, rotate
from a2a_tasks.access.denials import Throttle
from a2a_tasks.models import AuditEntry, AuditLink
from a2a_tasks.store import audit_seals
from a2a_tasks.store import hop as store
from a2a_tasks.store.hop import hop
from tests.bindings.client import Client
from tests.execution.host import hosting

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD, TOKEN, CREDENTIALS, HEADER = "canary-pw", "canary-token", "canary-credentials", "canary-h"
QUERY, SAID, WRONG_JWT = "canary-query", "canary-said", "canary.eyJhbGciOiJub25lIn0.jwt"
MESSAGE = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": f"echo {SAID}"}]}
WEBHOOK = {
    "url": f"https://hooks.example.com/{QUERY}?key={QUERY}",
    "token": TOKEN,
    "authentication": {"scheme": "Bearer", "credentials": CREDENTIALS},
}


@pytest.fixture(autouse=True)
async def local(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    settings.A2A_RUNS, settings.A2A_ANONYMOUS, settings.A2A_BASIC = "local", "0", True
    settings.A2A_JWT_ISSUER = "https://issuer.invalid"
    monkeypatch.setattr(denials, "_throttle", Throttle(denials._put))
    callers.forget()
    async with hosting():
        yield


async def post(path: str, body: Any, **headers: str) -> int:
    """The status of what an agent answers."""
    client = Client(application)
    answer = await client.post(path, body, headers={"a2a-version": "1.0", **headers})
    return answer.status


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


async def use_everything() -> list[str]:
    """Send, register, be refused; returns what must be nowhere."""
    issued = await hop(issue, "robot")
    rotated = await hop(rotate, issued.row.prefix, timedelta(hours=1))
    await hop(User.objects.create_user, "bob", None, PASSWORD)
    send = "/agents/demo/message:send"
    body = {"message": MESSAGE, "configuration": {"taskPushNotificationConfig": WEBHOOK}}
    assert await post(send, body, **{"x-api-key": rotated.key}) == 200
    assert await post(send, body, authorization=basic("bob", PASSWORD)) == 200
    for wrong in (
        {"x-api-key": issued.key[:-3] + "xyz"},
        {"authorization": basic("bob", f"{PASSWORD}-wrong")},
        {"authorization": basic(PASSWORD, "x")},
        {"authorization": f"Bearer {WRONG_JWT}"},
        {"authorization": f"Other {TOKEN}"},
    ):
        assert await post(send, body, **wrong) == 401
    made = [key.key.rpartition("_")[2] for key in (issued, rotated)]
    return [*made, PASSWORD, TOKEN, CREDENTIALS, QUERY, SAID, WRONG_JWT, "canary"]


def sign_in_wrongly() -> None:
    browser = Browser()
    for name, password in (("bob", f"{PASSWORD}-x"), (PASSWORD, "x"), ("bob", PASSWORD)):
        browser.post("/admin/login/", {"username": name, "password": password})


def everything() -> list[Any]:
    """The log as it is stored."""
    return [*AuditEntry.objects.values(), *AuditLink.objects.values()]


def exported() -> str:
    out = io.StringIO()
    call_command("audit", "export", stdout=out, stderr=io.StringIO())
    return out.getvalue()


async def test_no_secret_is_in_an_entry_an_export_or_a_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "a2a_tasks")
    hunted = await use_everything()
    await hop(sign_in_wrongly)
    denials.flush()
    store.close()
    await hop(audit_seals.seal_all)
    rows: list[Any] = await hop(everything)
    actions = {row["action"] for row in rows if "action" in row}
    assert {"task.send", "webhook.create", "key.create", "key.rotate"} <= actions
    assert {"access.refused", "login.failed", "user.create"} <= actions
    for place in (str(rows), await hop(exported), caplog.text):
        assert [secret for secret in hunted if secret in place] == []
