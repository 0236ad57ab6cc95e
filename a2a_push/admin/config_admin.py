"""Webhooks: where each leads, how far it has been told, why nothing is sent to it. Its secrets are on no page."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import BooleanField, Case, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.text import Truncator
from django.views.decorators.http import require_POST

from a2a_push.admin import cells
from a2a_push.admin.filters import StateFilter
from a2a_push.admin.told import newest_deliveries
from a2a_push.models import PushConfig
from a2a_push.store.switches import enable_config
from a2a_tasks.admin.confirming import Question, ask, is_confirmed
from a2a_tasks.admin.filters import CreatedFilter
from a2a_tasks.admin.paging import newest
from a2a_tasks.admin.read_only import ReadOnlyAdmin, badge
from a2a_tasks.admin.shown import moment
from a2a_tasks.admin.staff import within

__all__ = ["ConfigAdmin", "state_of"]

#: Tasks of one id (of different owners) that a search follows.
TASKS = 100


def state_of(row: PushConfig) -> str:
    """Whether it is told: `active`, `settled` (its task has ended, and all is told), `disabled`."""
    if row.disabled_reason:
        return "disabled"
    return "active" if row.active else "settled"


@admin.register(PushConfig)
class ConfigAdmin(ReadOnlyAdmin[PushConfig]):
    """The list and the page of webhooks."""

    list_display = (
        *("short_id", "state_badge", "task_cell", "receiver_cell"),
        *("told", "disabled_reason", "created"),
    )
    list_filter = (StateFilter, CreatedFilter)
    search_fields = ("public_id",)
    search_help_text = "A task id, or the id of a webhook among the newest 100,000, complete."
    fields = (
        *("state_badge", "disabled_reason", "told", "due", "lease", "created"),
        *("task_cell", "receiver_cell", "url_cell", "dialect", "schemes_cell", "secrets"),
    )
    change_form_template = "admin/a2a_push/pushconfig/page.html"
    tenant_lookup = "task__tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PushConfig]:
        """Leave the secrets where they are, and say only whether there are some."""
        rows = super().get_queryset(request).select_related("task", "receiver")
        unread = ("status_message", "metadata", "memory", "run_token")
        return rows.defer("secret", "token", *(f"task__{name}" for name in unread)).annotate(
            has_secrets=Case(
                When(secret="", then=Value(False)),
                default=Value(True),
                output_field=BooleanField(),
            )
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[PushConfig], search_term: str
    ) -> tuple[QuerySet[PushConfig], bool]:
        """Find by exact id: of the task, else its own."""
        wanted = search_term.strip()
        if not wanted:
            return queryset, False
        mine = within(PushConfig.objects.all(), request.user, self.tenant_lookup)
        tasks = mine.filter(task__public_id=wanted).order_by("task").distinct()
        keys = list(tasks.values_list("task", flat=True)[:TASKS])
        if keys:
            return queryset.filter(task_id__in=keys), False
        return newest(queryset).filter(public_id=wanted), False

    # -- columns and fields

    @admin.display(description="webhook")
    def short_id(self, row: PushConfig) -> str:
        """Show the id, cut: it is the client's own word."""
        return Truncator(row.public_id).chars(40)

    @admin.display(description="state")
    def state_badge(self, row: PushConfig) -> str:
        """Show the state as a word."""
        return badge(state_of(row))

    @admin.display(description="task")
    def task_cell(self, row: PushConfig) -> str:
        """Link to the task."""
        return cells.task_link(row)

    @admin.display(description="receiver")
    def receiver_cell(self, row: PushConfig) -> str:
        """Link to the receiver."""
        return cells.receiver_link(row.receiver)

    @admin.display(description="URL")
    def url_cell(self, row: PushConfig) -> str:
        """Show the URL, without what its query says."""
        return cells.shown_url(row.url)

    @admin.display(description="told up to event")
    def told(self, row: PushConfig) -> str:
        """Say how far it is, of how many events."""
        return f"{row.cursor} of {row.task.last_event}"

    @admin.display(description="looked at again")
    def due(self, row: PushConfig) -> str:
        """Say when somebody looks at it next."""
        if not row.active:
            return "when it is told of something again"
        return moment(row.due_at) or "when there are events"

    @admin.display(description="lease")
    def lease(self, row: PushConfig) -> str:
        """Say who sends for it, and until when."""
        if row.lease_until is None or row.lease_until < timezone.now():
            return "not held"
        return f"{row.worker or 'held'} until {moment(row.lease_until)}"

    @admin.display(description="schemes")
    def schemes_cell(self, row: PushConfig) -> str:
        """Name the schemes of its authentication."""
        try:
            names = json.loads(row.schemes or "[]")
        except ValueError:
            return row.schemes
        return ", ".join(map(str, names)) or "none"

    @admin.display(description="token, credentials, headers")
    def secrets(self, row: PushConfig) -> str:
        """Say that there are some, and no more."""
        return "kept, shown to nobody" if getattr(row, "has_secrets", True) else "none"

    @admin.display(description="created")
    def created(self, row: PushConfig) -> str:
        """Show the moment to the second."""
        return moment(row.created_at)

    # -- the page

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the newest deliveries below the fields."""
        row: PushConfig = context["original"]
        context.update(
            told=newest_deliveries(request, config=row.pk),
            may_enable=bool(row.disabled_reason) and self.has_switch_permission(request),
        )
        return super().render_change_form(request, context, *args, **kwargs)

    def has_switch_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may enable it: those who were given `change webhook`, which means nothing else here."""
        return request.user.has_perm("a2a_push.change_pushconfig")

    @method_decorator(require_POST)
    def enable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then enable the webhook whose page has the button."""
        if not self.has_switch_permission(request):
            raise PermissionDenied
        row = self.get_object(request, object_id)
        back = reverse("admin:a2a_push_pushconfig_change", args=[row.pk])
        if not is_confirmed(request):
            text = "It is told of what comes from now on. What is dead stays so until it is sent again."
            title = "Enable the webhook?"
            question = Question(title=title, text=text, verb="Yes, enable it", back=back)
            return ask(self, request, question)
        if enable_config(row.pk):
            self.log_change(request, row, "Enabled.")
            self.message_user(request, "The webhook is enabled.", messages.SUCCESS)
        else:
            self.message_user(request, "It was not disabled.", messages.WARNING)
        return HttpResponseRedirect(back)

    def get_urls(self) -> list[URLPattern]:
        """Put the button's address before the stock ones, whose last one takes every path."""
        view = self.admin_site.admin_view(self.enable_view)
        return [
            path("<int:object_id>/enable/", view, name="a2a_push_pushconfig_enable"),
            *super().get_urls(),
        ]
