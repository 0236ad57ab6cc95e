"""Tags for the frame of every page of the console."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.text import capfirst

from a2a_console.playground import has_playground
from a2a_console.queue.waiting import list_waiting
from a2a_console.site import PAGES
from a2a_console.staff import within
from a2a_console.times import took

__all__ = ["count_inbox", "first_words", "offers_playground", "page_name"]

register = template.Library()
register.filter("took", took)
#: The bound of the number beside *Inbox*.
MOST = 999
#: The words of an empty list, by the name of its table.
FIRST_WORDS = {
    "Attempt": "No webhook was sent yet.",
    "ApiKey": "No key yet. A program calls agents with a key. Its secret is shown once, when the key is made here or by manage.py api_keys create NAME.",
    "Budget": "No budget yet. A budget limits the tokens, the money, the calls of models or the seconds of work of all together, or of each tenant, caller, agent or task.",
    "BudgetUse": "No budget was used yet.",
    "BulkJob": "No job yet. Select tasks in their list, and choose Cancel or Run again: workers do it, also when the page is closed.",
    "Context": "No conversation yet: the first message of a client begins one.",
    "Delivery": "No webhook was sent yet. Each event of a task that has a webhook is a delivery.",
    "Grant": "No grant yet. Agents that admit only listed callers (A2A_GRANTS=listed) need one for each of them.",
    "Hold": "No hold. What a hold covers is kept, whatever retention and erasure would remove.",
    "PushConfig": "No webhook yet. Clients register them with their messages.",
    "Receiver": "No endpoint yet. The first webhook that a client registers makes one.",
    "Run": "No run yet: each message to an agent makes one.",
    "TenantRetention": "No tenant has days of its own: A2A_RETENTION_DAYS counts for all.",
}


@register.simple_tag(takes_context=True)
def count_inbox(context: dict[str, Any]) -> str:
    """Return the number of tasks that wait for people; empty = none."""
    count = within(list_waiting(), context["request"].user).values("pk")[: MOST + 1].count()
    return f"{MOST}+" if count > MOST else str(count or "")


@register.filter
def page_name(table: Any) -> str:
    """Return the name of the page of a table, given by its `_meta`: that of the sidebar."""
    return PAGES.get(table.object_name) or str(capfirst(table.verbose_name_plural))


@register.filter
def first_words(table: Any) -> str:
    """Return what the list of a table says while the table is empty; empty = nothing."""
    return FIRST_WORDS.get(table.object_name, "")


@register.simple_tag
def offers_playground() -> bool:
    """Return whether this host has the playground."""
    return has_playground()
