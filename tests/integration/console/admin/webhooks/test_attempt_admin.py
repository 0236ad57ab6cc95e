"""The admin of attempts."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.support.console.admin.rows import make_task
from tests.support.push.rows import add_attempt, make_config, make_delivery

pytestmark = pytest.mark.django_db

LIST = "/admin/a2a_push/attempt/"


class TestAttempts:
    def test_are_found_by_what_they_got_and_by_the_webhook_id(self, admin_client: Client) -> None:
        delivery = make_delivery(make_config(make_task()))
        other = make_delivery(make_config(make_task("other")))
        busy, timeout = add_attempt(delivery, 503), add_attempt(delivery, None)
        done = add_attempt(other, 200)
        for query, found in [
            ("", [done, timeout, busy]),
            ("?answer=2xx", [done]),
            ("?answer=5xx", [busy]),
            ("?answer=timeout", [timeout]),
            (f"?q={delivery.webhook_id}", [timeout, busy]),
        ]:
            answer = admin_client.get(LIST + query)
            assert list(answer.context["cl"].result_list) == found, query
        assert admin_client.get(LIST + "?answer=nonsense").status_code == 400

    def test_the_page_shows_what_was_answered(self, admin_client: Client) -> None:
        attempt = add_attempt(make_delivery(make_config(make_task())), 503, excerpt="come again")
        body = admin_client.get(reverse("admin:a2a_push_attempt_change", args=[attempt.pk])).text
        assert "come again" in body
        assert "answered 503" in body
