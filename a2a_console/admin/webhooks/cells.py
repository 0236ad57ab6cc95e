"""Cells that several lists and pages of webhooks share: links to each other, and short results."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.text import Truncator

from a2a_console.site import page_url
from a2a_push.models import Attempt, Delivery, PushConfig, Receiver

__all__ = ["answer", "config_link", "delivery_link", "events", "receiver_link", "task_link"]


def task_link(row: Delivery | PushConfig) -> str:
    """Link to the task."""
    return _link("a2a_tasks_task_change", row.task_id, row.task.public_id)


def receiver_link(receiver: Receiver) -> str:
    """Link to the receiver by its address, without the scheme."""
    label = receiver.address.partition("://")[2] or receiver.address
    link = _link("a2a_push_receiver_change", receiver.pk, label)
    if not receiver.tenant:
        return link
    return format_html('{} <span class="a2a-quiet">{}</span>', link, receiver.tenant[:40])


def delivery_link(delivery: Delivery) -> str:
    """Link to the delivery."""
    return _link("a2a_push_delivery_change", delivery.pk, delivery.webhook_id)


def config_link(config: PushConfig | None) -> str:
    """Link to the webhook, or say that it was deleted."""
    if config is None:
        return "deleted"
    return _link("a2a_push_pushconfig_change", config.pk, config.public_id)


def _link(view: str, key: int, label: str) -> str:
    cut = Truncator(label).chars(60)
    url = page_url(view, key)
    return format_html('<a class="a2a-id" href="{}" title="{}">{}</a>', url, label[:500], cut)


def answer(attempt: Attempt) -> str:
    """Return the result of an attempt: the HTTP status, or the fault that prevented a response."""
    return str(attempt.status) if attempt.status else attempt.fault.replace("_", " ")


def events(delivery: Delivery) -> str:
    """Return the numbers of the delivered events."""
    if delivery.number == delivery.through:
        return str(delivery.number)
    return f"{delivery.number}–{delivery.through}"
