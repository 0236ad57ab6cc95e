"""Tags for the frame of every page of the console."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.text import capfirst

from a2a_console.playground import has_playground
from a2a_console.queue.waiting import list_waiting
from a2a_console.site import PAGES
from a2a_console.staff import within

__all__ = ["count_inbox", "offers_playground", "page_name"]

register = template.Library()
#: The bound of the number beside *Inbox*.
MOST = 999


@register.simple_tag(takes_context=True)
def count_inbox(context: dict[str, Any]) -> str:
    """Return the number of tasks that wait for people; empty = none."""
    count = within(list_waiting(), context["request"].user).values("pk")[: MOST + 1].count()
    return f"{MOST}+" if count > MOST else str(count or "")


@register.filter
def page_name(table: Any) -> str:
    """Return the name of the page of a table, given by its `_meta`: that of the sidebar."""
    return PAGES.get(table.object_name) or str(capfirst(table.verbose_name_plural))


@register.simple_tag
def offers_playground() -> bool:
    """Return whether this host has the playground."""
    return has_playground()
