"""What `manage.py check` says of the settings of webhooks."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from a2a_push.checks import check_public_url
from a2a_tasks.conf import forget


def said() -> list[str | None]:
    """The checks of this app that have something to say."""
    return [message.id for message in run_checks() if (message.id or "").startswith("a2a_push")]


def test_nothing_is_said_of_the_defaults() -> None:
    assert said() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALLOW_NETWORKS", "10.0.0.1/8"), ("PORTS", "https"), ("PROXY", "https://proxy")],
)
def test_what_cannot_be_read_is_an_error(name: str, value: str, settings: Settings) -> None:
    setattr(settings, f"A2A_WEBHOOK_{name}", value)
    assert said() == ["a2a_push.E002"]


def test_what_is_neither_on_nor_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_WEBHOOK_ALLOW_PRIVATE", "maybe")
    forget()
    assert said() == ["a2a_push.E002"]
    monkeypatch.undo()
    forget()


def test_a_bundle_that_is_not_there_is_an_error(settings: Settings) -> None:
    settings.A2A_WEBHOOK_CA_BUNDLE = "/no/such/file.pem"
    assert said() == ["a2a_push.E003"]


def test_an_open_loopback_is_a_warning_at_every_start(settings: Settings) -> None:
    settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
    assert said() == ["a2a_push.W001"]


def test_a_host_that_webhooks_cannot_name_is_a_warning_before_it_is_deployed(
    settings: Settings,
) -> None:
    assert [message.id for message in check_public_url()] == ["a2a_push.W002"]
    settings.A2A_PUBLIC_URL = "https://agents.example.com"
    assert list(check_public_url()) == []
