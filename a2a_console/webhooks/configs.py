"""Webhooks of pages and API: their states, and their URLs without credentials."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from django.db.models import QuerySet

from a2a_push.models import PushConfig

__all__ = ["HIDDEN", "STATES", "describe_config", "filter_state", "redact_url"]

STATES = ["active", "settled", "disabled"]
#: The replacement of a possible secret.
HIDDEN = "…"


def describe_config(config: PushConfig) -> str:
    """Return `active`, `settled` (the task has ended, and all its events are delivered or dead) or `disabled`."""
    if config.disabled_reason:
        return "disabled"
    return "active" if config.active else "settled"


def filter_state(rows: QuerySet[PushConfig], state: str) -> QuerySet[PushConfig]:
    """Return the webhooks in this state."""
    if state == "disabled":
        return rows.exclude(disabled_reason="")
    return rows.filter(disabled_reason="", active=state == "active")


def redact_url(url: str) -> str:
    """Return the URL with the names in its query but without the values, which often are credentials."""
    parts = urlsplit(url)
    if not parts.query:
        return url
    names = [name for name, value in parse_qsl(parts.query, keep_blank_values=True) if value]
    query = "&".join(f"{name}={HIDDEN}" for name in names) or HIDDEN
    return parts._replace(query=query, fragment="").geturl()
