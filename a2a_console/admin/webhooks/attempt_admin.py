"""Attempts in the admin: each is one request of a delivery, with its result."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.html import format_html

from a2a_console.admin.webhooks import cells
from a2a_console.admin.webhooks.filters import AnswerFilter
from a2a_console.admin.widgets.columns import column
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows
from a2a_console.site import site
from a2a_console.times import moment, took
from a2a_push.models import Attempt, Delivery

__all__ = ["AttemptAdmin"]


@admin.register(Attempt, site=site)
class AttemptAdmin(ReadOnlyAdmin[Attempt]):
    """The list and the page of attempts."""

    list_display = ("started", "delivery_cell", "number", "answer", "took", "trigger", "worker")
    list_filter = (AnswerFilter,)
    search_fields = ("delivery__webhook_id",)
    search_help_text = "A webhook-id, complete."
    fields = (
        *("answer", "number", "started", "took", "trigger", "worker"),
        *("delivery_cell", "receiver_cell", "detail", "excerpt_cell"),
    )
    follows = True
    change_form_template = "admin/a2a_tasks/page.html"
    tenant_lookup = "delivery__task__tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        """Return the attempts without the bodies of their deliveries."""
        rows = super().get_queryset(request).select_related("delivery", "delivery__receiver")
        return rows.defer("delivery__body")

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by the exact id of the delivery, which is read first, in its own query."""
        found = Delivery.objects.filter(webhook_id=wanted).values_list("pk", flat=True)
        return rows.filter(delivery_id__in=list(found))

    started = column("started", lambda row: moment(row.started_at))
    delivery_cell = column("delivery", lambda row: cells.delivery_link(row.delivery))
    receiver_cell = column("receiver", lambda row: cells.receiver_link(row.delivery.receiver))
    answer = column(
        "answer", lambda row: render_to_string("admin/a2a_push/answer.html", {"attempt": row})
    )
    took = column("took", lambda row: took(row.seconds))
    excerpt_cell = column(
        "response",
        lambda row: format_html('<span class="a2a-text" dir="auto">{}</span>', row.excerpt or "–"),
    )
