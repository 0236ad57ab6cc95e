"""Sample events: a request like that of a webhook, for no task, of which only the audit log knows."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator

import pytest
from django.forms import model_to_dict
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from a2a_push.keyring import Audience
from a2a_push.keys import ring
from a2a_push.models import Attempt, Delivery, PushConfig, Receiver
from a2a_push.operations.sample_event import MARK, TEXT, send_sample
from a2a_push.sender import AttemptRefused, Delivered
from a2a_tasks.models import AuditEntry, Event, Task
from a2a_tasks.protocol.dialects import DIALECTS
from tests.support.console.admin.rows import make_task
from tests.support.push.inbox import Inbox, inbox
from tests.support.push.receivers import answer
from tests.support.push.rows import QUERY, SEALED, make_config, make_receiver
from tests.support.push.verification import verify

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def near(settings: Settings) -> None:
    """Receivers are on this machine."""
    settings.A2A_WEBHOOK_ALLOW_HTTP = True
    settings.A2A_WEBHOOK_ALLOW_PRIVATE = True


@pytest.fixture
def receiver() -> Iterator[Inbox]:
    """Somebody who is told, in a thread of its own: an operator's request waits for the answer."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    made = inbox()
    try:
        yield asyncio.run_coroutine_threadsafe(made.__aenter__(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(made.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def config(receiver: Inbox) -> PushConfig:
    """A webhook that leads there."""
    return make_config(make_task(), receiver=make_receiver(receiver.url()))


class TestASample:
    def test_is_signed_like_the_newest_webhook_there_and_marked(
        self, receiver: Inbox, config: PushConfig
    ) -> None:
        receiver.answers = [answer("202 Accepted", body=f"thanks, {SEALED[0]}".encode())]
        outcome = send_sample(config.receiver)
        assert isinstance(outcome, Delivered)
        assert (outcome.status, outcome.excerpt) == (202, "thanks, [hidden]")
        (seen,) = receiver.seen
        assert seen.path == f"/hook?key={QUERY}"
        assert seen.header("x-a2a-notification-token") == [SEALED[0]]
        assert seen.header("authorization") == [f"Bearer {SEALED[1]}"]
        told = json.loads(seen.body)["statusUpdate"]
        message = told["status"]["message"]
        assert (message["parts"], message["metadata"]) == ([{"text": TEXT}], {MARK: True})
        audience = Audience("", receiver.url("").removesuffix("/"), config.public_id)
        keys = ring().verifiers(audience)
        assert verify(keys, dict(seen.headers), seen.body, time.time()) == f"msg_{told['taskId']}"
        assert told["taskId"].startswith("test-")

    def test_is_no_delivery_counts_nowhere_and_leaves_an_entry(
        self, receiver: Inbox, config: PushConfig
    ) -> None:
        before = model_to_dict(config.receiver), Task.objects.count(), Event.objects.count()
        receiver.answers = [answer("503 Unavailable", "Retry-After: 60", body=b"later")]
        outcome = send_sample(config.receiver)
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.detail, outcome.excerpt) == ("answered 503", "later")
        after = model_to_dict(Receiver.objects.get())
        assert (after, Task.objects.count(), Event.objects.count()) == before
        assert (Delivery.objects.count(), Attempt.objects.count()) == (0, 0)
        entry = AuditEntry.objects.get(action="receiver.test")
        detail = json.loads(entry.detail)
        assert entry.object == str(config.receiver_id)
        assert (detail["status"], detail["fault"]) == (503, "status")

    def test_goes_nowhere_that_the_guard_refuses(
        self, receiver: Inbox, config: PushConfig, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_ALLOW_PRIVATE = False
        outcome = send_sample(config.receiver)
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, receiver.seen) == ("address", [])

    def test_is_written_in_every_dialect(self, receiver: Inbox, config: PushConfig) -> None:
        for dialect in DIALECTS:
            PushConfig.objects.update(dialect=dialect)
            assert isinstance(send_sample(config.receiver), Delivered), dialect
        assert len(receiver.seen) == len(DIALECTS)

    def test_needs_a_key_that_opens_the_secrets_and_a_webhook(self, config: PushConfig) -> None:
        PushConfig.objects.update(secret="s1:broken")
        outcome = send_sample(config.receiver)
        assert isinstance(outcome, AttemptRefused)
        assert "no key of this host opens" in outcome.detail
        PushConfig.objects.all().delete()
        assert send_sample(config.receiver) is None

    def test_says_on_the_page_what_was_answered(
        self, receiver: Inbox, config: PushConfig, admin_client: Client
    ) -> None:
        where = reverse("admin:a2a_push_receiver_test", args=[config.receiver_id])
        for said, shown in (
            (answer("200 OK", body=b"<b>thanks"), "answered 200"),
            (answer("401 No"), "answered 401"),
        ):
            receiver.answers = [said]
            page = admin_client.post(where, follow=True)
            assert f"Test event: {shown} after" in page.text
            assert "<b>thanks" not in page.text
        PushConfig.objects.all().delete()
        assert "nothing to sign" in admin_client.post(where, follow=True).text
