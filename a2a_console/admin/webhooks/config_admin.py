"""Webhooks in the admin: URL, progress and state of each. No page shows the secrets."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.text import Truncator
from django.views.decorators.http import require_POST

from a2a_console.admin.webhooks import cells
from a2a_console.admin.webhooks.filters import DeliveryStateFilter
from a2a_console.admin.webhooks.sent_notifications import newest_deliveries
from a2a_console.admin.widgets.columns import column
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.filters import CreatedFilter
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows, badge
from a2a_console.diagnosis.webhooks import without_secrets
from a2a_console.search.bounded_rows import newest
from a2a_console.site import site
from a2a_console.staff import within
from a2a_console.times import moment
from a2a_console.webhooks.configs import describe_config, redact_url
from a2a_push.models import PushConfig
from a2a_push.store.switches import enable_config

__all__ = ["ConfigAdmin"]

#: The largest number of tasks with one id (of different owners) that a search follows.
TASKS = 100


@admin.register(PushConfig, site=site)
class ConfigAdmin(ReadOnlyAdmin[PushConfig]):
    """The list and the page of webhooks."""

    list_display = (
        *("short_id", "state_badge", "task_cell", "receiver_cell"),
        *("progress", "disabled_reason", "created"),
    )
    list_filter = (DeliveryStateFilter, CreatedFilter)
    search_fields = ("public_id",)
    search_help_text = "Exact task id or webhook id. Webhooks: newest 100,000 only."
    fields = (
        *("state_badge", "disabled_reason", "progress", "due", "lease", "created"),
        *("task_cell", "receiver_cell", "url_cell", "dialect", "schemes_cell", "secrets"),
    )
    own_views = ("<int:object_id>/enable/",)
    change_form_template = "admin/a2a_push/pushconfig/page.html"
    tenant_lookup = "task__tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PushConfig]:
        """Return the webhooks without their secrets, and with whether there are any."""
        return without_secrets(super().get_queryset(request))

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by the exact id of the task, else of the webhook."""
        mine = within(PushConfig.objects.all(), request.user, self.tenant_lookup)
        tasks = mine.filter(task__public_id=wanted).order_by("task").distinct()
        if keys := list(tasks.values_list("task", flat=True)[:TASKS]):
            return rows.filter(task_id__in=keys)
        return newest(rows).filter(public_id=wanted)

    # -- columns and fields

    short_id = column("webhook", lambda row: Truncator(row.public_id).chars(40))
    state_badge = column("state", lambda row: badge(describe_config(row)))
    task_cell = column("task", lambda row: cells.task_link(row))
    receiver_cell = column("receiver", lambda row: cells.receiver_link(row.receiver))
    url_cell = column("URL", lambda row: redact_url(row.url))
    progress = column("processed events", lambda row: f"{row.cursor} of {row.task.last_event}")
    secrets = column(
        "token, credentials, headers",
        lambda row: "stored, hidden" if getattr(row, "has_secrets", True) else "none",
    )
    created = column("created", lambda row: moment(row.created_at))

    @admin.display(description="next check")
    def due(self, row: PushConfig) -> str:
        """Show the moment of the next check."""
        if not row.active:
            return "never: the task has ended"
        return moment(row.due_at) or "on the next event"

    @admin.display(description="lease")
    def lease(self, row: PushConfig) -> str:
        """Show the worker that sends for the webhook, and until when."""
        if row.lease_until is None or row.lease_until < timezone.now():
            return "not held"
        return f"{row.worker or 'held'} until {moment(row.lease_until)}"

    @admin.display(description="schemes")
    def schemes_cell(self, row: PushConfig) -> str:
        """List the schemes of its authentication."""
        try:
            names = json.loads(row.schemes or "[]")
        except ValueError:
            return row.schemes
        return ", ".join(map(str, names)) or "none"

    # -- the page

    def read_page(self, request: HttpRequest, row: PushConfig) -> dict[str, Any]:
        """Show the newest deliveries below the fields."""
        return {
            "deliveries": newest_deliveries(request, config=row.pk),
            "may_enable": bool(row.disabled_reason) and self.has_switch_permission(request),
        }

    def has_switch_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may enable a webhook. The permission `change webhook` means only this here."""
        return request.user.has_perm("a2a_push.change_pushconfig")

    @method_decorator(require_POST)
    def enable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then enable the webhook."""
        row, back = self.read_form(request, object_id, may=self.has_switch_permission(request))
        if not is_confirmed(request):
            text = "It is notified of new events from now on. Failed deliveries stay failed until they are sent again."
            title = "Enable the webhook?"
            question = Question(title=title, text=text, verb="Enable", back=back)
            return ask(self, request, question)
        if enable_config(row.pk):
            self.log_change(request, row, "Enabled.")
            self.message_user(request, "The webhook is enabled.", messages.SUCCESS)
        else:
            self.message_user(request, "It was not disabled.", messages.WARNING)
        return HttpResponseRedirect(back)
