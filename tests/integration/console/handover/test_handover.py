"""The page on which a secret is handed over, as a browser has it: nothing of the secret comes back, nothing tells links apart."""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from a2a_tasks import pubsub, sealing
from a2a_tasks.access import auth_failures, rate_limits, token_buckets
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.models import AuditEntry, HandedSecret, Message, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import handed_secrets
from tests.support.agents_under_test import playing
from tests.support.store.world import held

pytestmark = pytest.mark.django_db

NAME, SECRET = "GitHub token", "canary-55aa"


def silent(turn: Turn) -> None:
    """Nobody runs it here."""


@pytest.fixture(autouse=True)
def agent(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """An agent that may be asked for, by addresses that were never wrong, also as far as Redis knows."""
    settings.A2A_RUNS = "celery"
    host = uuid.uuid4().hex
    monkeypatch.setattr(pubsub, "prefix", lambda: host)
    monkeypatch.setattr(token_buckets, "PATIENCE_SECONDS", 30.0)
    rate_limits.forget()
    with playing(silent, slug="demo-clerk", name="The <b>Clerk</b>") as found:
        yield found
    rate_limits.forget()


def asked(agent: Agent, *names: str, reason: str = "To <i>sign</i>.", task: str = "task-1") -> str:
    """The token of the link to a task that waits for secrets."""
    run = held(task)
    link = handed_secrets.ask(run, names or (NAME,), reason)
    assert link is not None
    Task.objects.filter(pk=run.task).update(
        state=TaskState.AUTH_REQUIRED, agent=agent.slug, run_token=""
    )
    return link.token


def shown(token: str, browser: Client | None = None) -> Any:
    return (browser or Client()).get(f"/handover/{token}")


def send(token: str, browser: Client | None = None, **said: Any) -> Any:
    return (browser or Client()).post("/handover/", {"token": token, **said})


def statements(looked: CaptureQueriesContext) -> tuple[str, ...]:
    """What was said to the database, without values, and without the savepoints of a test that is rolled back."""
    said = (re.sub(r"'[^']*'", "?", query["sql"]) for query in looked)
    return tuple(text for text in said if "SAVEPOINT" not in text)


class TestThePage:
    def test_it_says_who_asks_for_what_and_why(self, agent: Agent) -> None:
        text = shown(asked(agent)).content.decode()
        assert "The &lt;b&gt;Clerk&lt;/b&gt;" in text
        assert "To &lt;i&gt;sign&lt;/i&gt;." in text
        assert NAME in text
        assert 'type="password"' in text

    def test_nobody_keeps_it_and_no_other_host_learns_of_it(self, agent: Agent) -> None:
        answer = shown(asked(agent))
        assert "no-store" in answer["Cache-Control"]
        assert answer["Referrer-Policy"] == "same-origin"
        assert "default-src 'none'" in answer["Content-Security-Policy"]
        assert answer["X-Frame-Options"] == "DENY"

    def test_the_form_is_sent_to_an_address_without_the_token(self, agent: Agent) -> None:
        text = shown(asked(agent)).content.decode()
        assert re.findall(r'action="([^"]*)"', text) == ["/handover/"]

    def test_looking_does_not_use_it_up_and_is_one_look_at_the_database(self, agent: Agent) -> None:
        token = asked(agent)
        for _ in range(2):
            with CaptureQueriesContext(connection) as looked:
                assert shown(token).status_code == 200
        assert len(statements(looked)) == 1


class TestHandingOver:
    def test_it_is_sealed_and_the_task_goes_on(self, agent: Agent) -> None:
        token = asked(agent)
        answer = send(token, None, **{"secret-0": SECRET})
        assert (answer.status_code, "Handed over" in answer.content.decode()) == (200, True)
        row = HandedSecret.objects.get()
        assert json.loads(sealing.unseal(row.sealed))["handed"] == {NAME: SECRET}
        assert Task.objects.get().state == TaskState.WORKING

    def test_several_lines_come_as_they_were(self, agent: Agent) -> None:
        send(asked(agent), None, **{"lines-0": "-----BEGIN\r\nabc\r\n-----END"})
        kept = json.loads(sealing.unseal(HandedSecret.objects.get().sealed))
        assert kept["handed"] == {NAME: "-----BEGIN\nabc\n-----END"}

    def test_what_is_missing_is_named_and_nothing_that_was_sent_comes_back(
        self, agent: Agent
    ) -> None:
        token = asked(agent, "user", "password")
        answer = send(token, None, **{"secret-1": SECRET})
        assert answer.status_code == 400
        text = answer.content.decode()
        assert "user is missing" in text
        assert SECRET not in text
        assert send(token, None, **{"secret-0": "bob", "secret-1": SECRET}).status_code == 200

    def test_it_needs_the_token_of_the_form(self, agent: Agent) -> None:
        token = asked(agent)
        browser = Client(enforce_csrf_checks=True)
        assert send(token, browser, **{"secret-0": SECRET}).status_code == 403
        auth_failures.flush()
        assert token not in str(list(AuditEntry.objects.values()))
        form = shown(token, browser).content.decode()
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert found
        said = {"secret-0": SECRET, "csrfmiddlewaretoken": found[1]}
        assert send(token, browser, **said).status_code == 200

    def test_whoever_is_not_signed_in_is_nobody_in_the_audit_log(self, agent: Agent) -> None:
        send(asked(agent), None, **{"secret-0": SECRET})
        entry = AuditEntry.objects.get(action="secret.handed")
        assert (entry.actor, SECRET in str(list(Message.objects.values()))) == ("", False)

    def test_an_agent_that_is_off_is_said_and_the_link_works_later(
        self, agent: Agent, settings: Settings
    ) -> None:
        token = asked(agent)
        settings.A2A_DISABLED_AGENTS = agent.slug
        answer = send(token, None, **{"secret-0": SECRET})
        assert (answer.status_code, "switched off" in answer.content.decode()) == (503, True)
        settings.A2A_DISABLED_AGENTS = ""
        assert send(token, None, **{"secret-0": SECRET}).status_code == 200


class TestUselessLinks:
    def useless(self, agent: Agent) -> dict[str, str]:
        """Tokens that open nothing, each in its own way."""
        used, over, answered = (asked(agent, task=f"task-{n}") for n in range(3))
        send(used, None, **{"secret-0": SECRET})
        HandedSecret.objects.filter(task__public_id="task-1").update(expires_at=Now())
        Task.objects.filter(public_id="task-2").update(state=TaskState.WORKING)
        return {
            "used": used,
            "over": over,
            "answered": answered,
            "none": "x" * 43,
            "long": "y" * 9_000,
        }

    def test_all_get_the_same_answer_after_the_same_look(self, agent: Agent) -> None:
        answers, looks = set(), set()
        for token in self.useless(agent).values():
            for ask in (shown, send):
                with CaptureQueriesContext(connection) as looked:
                    answer = ask(token)
                answers.add((answer.status_code, answer.content))
                looks.add(statements(looked))
        assert len(answers) == 1
        assert next(iter(answers))[0] == 404
        assert len(looks) == 1

    def test_an_address_that_tries_too_many_is_told_to_wait(
        self, agent: Agent, settings: Settings
    ) -> None:
        settings.A2A_RATE_WRONG_CREDENTIALS = "1/h burst 3"
        token = asked(agent)
        statuses = [shown("x" * 43).status_code for _ in range(4)]
        assert statuses == [404, 404, 404, 429]
        assert shown(token).status_code == 429
        elsewhere = Client(REMOTE_ADDR="192.0.2.9")
        assert shown(token, elsewhere).status_code == 200

    def test_no_log_has_the_token_or_the_secret(
        self, agent: Agent, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        settings.A2A_RATE_WRONG_CREDENTIALS = "1/h burst 1"
        token = asked(agent)
        shown(token)
        send(token, Client(enforce_csrf_checks=True), **{"secret-0": SECRET})
        shown("x" * 43)
        assert shown(token).status_code == 429
        ours = [
            r.getMessage()
            for r in caplog.records
            if r.name.startswith(("a2a", "django.request", "django.security"))
        ]
        assert token not in "\n".join(ours)
        assert SECRET not in "\n".join(ours)
