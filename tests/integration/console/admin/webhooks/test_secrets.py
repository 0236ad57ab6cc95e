"""Canaries: what is secret of a webhook is on no page, in no log entry, and in nothing the command writes."""

from __future__ import annotations

import io

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from a2a_push.models import DeliveryStatus, PushConfig
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import SECRETS, add_attempt, make_config, make_delivery

pytestmark = pytest.mark.django_db


def whole() -> PushConfig:
    """A webhook that has everything, with deliveries of each kind."""
    config = make_config(make_task(), disabled_reason="gone")
    for status in DeliveryStatus:
        add_attempt(make_delivery(config, status))
    return config


def pages(config: PushConfig) -> list[str]:
    """Every page there is of what belongs to a webhook."""
    named = [config, config.task, config.receiver, *config.deliveries.all()]
    named += [attempt for row in config.deliveries.all() for attempt in row.tries.all()]
    found = []
    for model, _ in admin.site._registry.items():  # every list, also of other apps
        found.append(reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist"))
    for row in named:
        name = row._meta.label_lower.replace(".", "_")
        found += [reverse(f"admin:{name}_{page}", args=[row.pk]) for page in ("change", "history")]
    return found


class TestSecrets:
    def test_are_on_no_page(self, admin_client: Client) -> None:
        config = whole()
        secrets = (*SECRETS, config.secret)
        for page in pages(config):
            answer = admin_client.get(page)
            assert answer.status_code == 200, page
            assert [secret for secret in secrets if secret in answer.text] == [], page

    @pytest.mark.django_db
    def test_are_in_no_question_and_no_log_entry(self, admin_client: Client) -> None:
        config = whole()
        dead = config.deliveries.get(status=DeliveryStatus.DEAD)
        pending = config.deliveries.get(status=DeliveryStatus.PENDING)
        span = {"since": "2020-01-01T00:00", "until": "2100-01-01T00:00", "reason": "x"}
        for url in (
            f"delivery/{dead.pk}/replay/",
            f"delivery/{pending.pk}/retry/",
            f"receiver/{config.receiver_id}/replay/",
            f"receiver/{config.receiver_id}/test/",
            f"receiver/{config.receiver_id}/disable/",
            f"receiver/{config.receiver_id}/enable/",
            f"pushconfig/{config.pk}/enable/",
        ):
            for answer in ({}, {"confirmed": "yes"}):
                page = admin_client.post(f"/admin/a2a_push/{url}", {**span, **answer}, follow=True)
                assert page.status_code == 200, url
                assert [secret for secret in SECRETS if secret in page.text] == [], url
        told = " ".join(f"{entry} {entry.change_message}" for entry in LogEntry.objects.all())
        assert told
        assert [secret for secret in SECRETS if secret in told] == []

    def test_are_not_listed_by_the_command(self) -> None:
        whole()
        out = io.StringIO()
        call_command("webhooks", "list", stdout=out)
        assert "hooks.example.com" in out.getvalue()
        assert [secret for secret in SECRETS if secret in out.getvalue()] == []
