"""Canaries: secrets go through everything that leaves an entry, and are in no entry, no export and no log."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from django.test import Client as Browser
from pytest_django import Settings

from a2a_project.asgi import application
from a2a_tasks.access import auth_failures, authentication
from a2a_tasks.access.api_keys import issue, rotate
from a2a_tasks.access.auth_failures import Throttle
from a2a_tasks.agents import Turn
from a2a_tasks.execution import run_log
from a2a_tasks.models import AuditEntry, AuditLink, HandedSecret, RunLine, Task
from a2a_tasks.protocol.operators import HANDOVER
from a2a_tasks.store import audit_seals
from a2a_tasks.store import db as store
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.execution.host import hosting
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_audit_log")]

PASSWORD, TOKEN, CREDENTIALS, HEADER = "canary-pw", "canary-token", "canary-credentials", "canary-h"
HANDED = "canary-handed-over"
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
    monkeypatch.setattr(auth_failures, "_throttle", Throttle(auth_failures._put))
    authentication.forget()
    async with hosting():
        yield


async def post(path: str, body: Any, **headers: str) -> int:
    client = Client(application)
    answer = await client.post(path, body, headers={"a2a-version": "1.0", **headers})
    return answer.status


def secret_of(key: str) -> str:
    """All of it: there may be underscores in it, and what follows the last of them may be found anywhere."""
    return key.split("_", 2)[2]


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


async def use_everything() -> list[str]:
    """Send, register, be refused; returns what must be nowhere."""
    issued = await run_in_thread(issue, "robot")
    rotated = await run_in_thread(rotate, issued.row.prefix, timedelta(hours=1))
    await run_in_thread(User.objects.create_user, "bob", None, PASSWORD)
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
    await hand_over_a_secret(rotated.key)
    made = [secret_of(key.key) for key in (issued, rotated)]
    return [*made, PASSWORD, TOKEN, CREDENTIALS, QUERY, SAID, WRONG_JWT, HANDED, "canary"]


async def hand_over_a_secret(key: str) -> None:
    """Ask for one, hand it over on the page, wrongly and rightly, and have it used."""
    asks = {**MESSAGE, "messageId": "2", "parts": [{"text": "secret token"}]}
    assert await post("/agents/demo/message:send", {"message": asks}, **{"x-api-key": key}) == 200
    said = await run_in_thread(lambda: Task.objects.latest("pk").status_message)
    token = json.loads(said)["metadata"][HANDOVER]["url"].rpartition("/")[2]
    form = {"token": token, "secret-0": HANDED}
    for browser, sent, status in (
        (Browser(enforce_csrf_checks=True), form, 403),
        (Browser(), {"token": "x" * 43, "secret-0": HANDED}, 404),
        (Browser(), {"token": token, "secret-1": HANDED}, 400),
        (Browser(), form, 200),
    ):
        answer = await asyncio.to_thread(posted, browser, sent)
        assert (answer.status_code, HANDED in answer.content.decode()) == (status, False)
    await until(
        lambda: run_in_thread(HandedSecret.objects.filter(sealed="").exists)
    )  # its turn is over


def posted(browser: Browser, form: dict[str, str]) -> Any:
    """The answer to a form of the page; in a thread of its own, since the page waits for the store's."""
    try:
        return browser.post("/handover/", form)
    finally:
        connections.close_all()


def sign_in_wrongly() -> None:
    browser = Browser()
    for name, password in (("bob", f"{PASSWORD}-x"), (PASSWORD, "x"), ("bob", PASSWORD)):
        browser.post("/admin/login/", {"username": name, "password": password})


def everything() -> list[Any]:
    return [*AuditEntry.objects.values(), *AuditLink.objects.values()]


def exported() -> str:
    out = io.StringIO()
    call_command("audit", "export", stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
async def test_no_secret_is_in_an_entry_an_export_or_a_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "a2a_tasks")
    hunted = await use_everything()
    await run_in_thread(sign_in_wrongly)
    auth_failures.flush()
    store.close()
    await run_in_thread(audit_seals.seal_all)
    rows: list[Any] = await run_in_thread(everything)
    actions = {row["action"] for row in rows if "action" in row}
    assert {"task.send", "webhook.create", "key.create", "key.rotate"} <= actions
    assert {"secret.asked", "secret.handed"} <= actions
    assert {"access.refused", "login.failed", "user.create"} <= actions
    for place in (str(rows), await run_in_thread(exported), caplog.text):
        assert [secret for secret in hunted if secret in place] == []


async def test_no_secret_that_an_agent_logs_is_in_the_log_of_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_log, "EVERY", 0.02)
    issued = await run_in_thread(issue, "robot")
    secret = secret_of(issued.key)
    told = f"called {WEBHOOK['url']} with {issued.key}, Bearer {TOKEN}, password={PASSWORD} as {WRONG_JWT}"

    async def run(turn: Turn) -> str:
        logging.getLogger("agent").warning(told)
        return "x"

    with playing(run) as agent:
        headers = {"x-api-key": issued.key}
        assert (
            await post(f"/agents/{agent.slug}/message:send", {"message": MESSAGE}, **headers) == 200
        )
    await until(lambda: run_in_thread(RunLine.objects.exists))
    kept = str(await run_in_thread(lambda: list(RunLine.objects.values())))
    assert "called https://hooks.example.com" in kept
    hunted = [secret, TOKEN, PASSWORD, "eyJhbGciOiJub25lIn0"]
    assert [one for one in [*hunted, f"key={QUERY}"] if one in kept] == []
