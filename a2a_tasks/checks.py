"""System checks of the host: `python manage.py check`. Each names the setting or agent and says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004

from a2a_tasks.agents import registry
from a2a_tasks.conf import conf, names

__all__ = ["check_agents", "check_settings"]

#: Settings that are one of a few words.
CHOICES = {
    "CARD_DEFAULT": ("hybrid", "1.0", "0.3"),
    "LEGACY_METHOD_WITH_1_0": ("reject", "serve"),
    "V10_ERROR_TABLE": ("1.0.1", "1.0.0"),
}


@register()
def check_agents(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """Mistakes in agents: clashing slugs, no skills, bad media types."""
    return list(registry.check())


@register()
def check_settings(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """Mistakes in the environment."""
    unreadable = list(_unreadable())
    return unreadable or list(_inconsistent())


def _unreadable() -> Iterable[CheckMessage]:
    for name in names():
        try:
            getattr(conf, name)
        except ValueError as fault:
            yield Error(f"A2A_{name}: {fault}", id="a2a_tasks.E010")


def _inconsistent() -> Iterable[CheckMessage]:
    if conf.BEAT_SECONDS * 3 > conf.LEASE_SECONDS:
        yield Error(
            "A2A_BEAT_SECONDS must be at most a third of A2A_LEASE_SECONDS",
            hint="One lost heartbeat must not cost a run.",
            id="a2a_tasks.E011",
        )
    if conf.RUNS not in {"auto", "local", "celery"}:
        yield Error("A2A_RUNS must be auto, local or celery", id="a2a_tasks.E012")
    for name, choices in CHOICES.items():
        if getattr(conf, name) not in choices:
            yield Error(f"A2A_{name} must be one of {', '.join(choices)}", id="a2a_tasks.E015")
    if conf.RUNS == "celery" and not settings.CELERY_BROKER_URL:
        yield Error("A2A_RUNS=celery needs CELERY_BROKER_URL", id="a2a_tasks.E013")
    if settings.CELERY_BROKER_URL and not settings.REDIS_URL:
        yield Warning(
            "workers without REDIS_URL: streams follow them by polling only",
            hint="Set REDIS_URL, so that hints cross processes at once.",
            id="a2a_tasks.W010",
        )
    if registry.find(conf.DEFAULT_AGENT) is None:
        yield Warning(
            f"A2A_DEFAULT_AGENT is {conf.DEFAULT_AGENT!r}, but no such agent is on",
            hint="The host has no card at its root.",
            id="a2a_tasks.W011",
        )
    if settings.DATABASES["default"].get("CONN_MAX_AGE"):
        yield Error("CONN_MAX_AGE must be 0 under ASGI", id="a2a_tasks.E014")
