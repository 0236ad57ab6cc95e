"""Deliveries in the admin: receiver, events, attempts and state of each, with retry and replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from a2a_console.admin.webhooks import cells
from a2a_console.admin.webhooks.filters import (
    ConfigFilter,
    ReceiverFilter,
    SettledFilter,
    StatusFilter,
    TaskAgentFilter,
)
from a2a_console.admin.webhooks.preview import HELD_BACK, preview_warnings
from a2a_console.admin.widgets.columns import ago, column
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.filters import CreatedFilter
from a2a_console.admin.widgets.formatting import format_body
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows, badge
from a2a_console.diagnosis.deliveries import last_attempt, reason_of, wait_of, with_company
from a2a_console.diagnosis.delivery_waits import Why
from a2a_console.excerpts import select_start, size
from a2a_console.site import page_url, site
from a2a_console.staff import within
from a2a_console.times import duration, moment, took
from a2a_push.models import Delivery, DeliveryStatus
from a2a_push.store.bodies import select_body
from a2a_push.store.replays import replay, retry_now
from a2a_push.store.retries import is_switched_off

__all__ = ["DeliveryAdmin"]

Asks = Callable[[list[Delivery], str], Question]
Acts = Callable[[HttpRequest, list[Delivery]], None]
#: The largest number of deliveries that one action sends again.
AT_ONCE = 1_000
#: The largest number of attempts on the page of a delivery.
ATTEMPTS = 100
#: The largest number of tasks with one id (of different owners) that a search follows.
TASKS = 100


@admin.register(Delivery, site=site)
class DeliveryAdmin(ReadOnlyAdmin[Delivery]):
    """The list and the page of deliveries."""

    list_display = (
        *("short_id", "made", "status_badge", "reason_cell", "receiver_cell"),
        *("last", "next_in", "task_cell", "agent"),
    )
    list_filter = (
        StatusFilter,
        TaskAgentFilter,
        ReceiverFilter,
        CreatedFilter,
        SettledFilter,
        ConfigFilter,
    )
    search_fields = ("webhook_id",)
    search_help_text = "A webhook-id, a task id or the number of a delivery, complete."
    actions = ("replay_selected", "retry_selected")
    fields = (
        *("status_badge", "reason_cell", "attempts", "next", "replays", "created", "settled"),
        *("task_cell", "agent", "event_link", "config_cell", "receiver_cell"),
        *("dialect", "content_type"),
    )
    own_views = ("<int:object_id>/replay/", "<int:object_id>/retry/")
    follows = True
    change_form_template = "admin/a2a_push/delivery/page.html"
    tenant_lookup = "task__tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        """Return the deliveries without bodies and secrets."""
        return with_company(super().get_queryset(request))

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by exact id, with a query for each kind of id: an OR across a join has no index."""
        # The database would refuse a number that is longer than any key.
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 19:  # noqa: PLR2004
            return rows.filter(pk=int(wanted))
        mine = within(Delivery.objects.all(), request.user, self.tenant_lookup)
        if mine.filter(webhook_id=wanted).exists():
            return rows.filter(webhook_id=wanted)
        tasks = mine.filter(task__public_id=wanted).order_by("task").distinct()
        return rows.filter(task_id__in=list(tasks.values_list("task", flat=True)[:TASKS]))

    # -- columns and fields

    short_id = column("webhook id", lambda row: row.webhook_id)
    status_badge = column("status", lambda row: badge(row.status))
    task_cell = column("task", lambda row: cells.task_link(row))
    agent = column("agent", lambda row: row.task.agent)
    receiver_cell = column("receiver", lambda row: cells.receiver_link(row.receiver))
    config_cell = column("webhook", lambda row: cells.config_link(row.config))
    reason_cell = column("reason", lambda row: reason_of(row))
    made = column("made", lambda row: ago(row.created_at))
    created = column("created", lambda row: moment(row.created_at))
    settled = column("settled", lambda row: moment(row.settled_at))

    @admin.display(description="events")
    def event_link(self, row: Delivery) -> str:
        """Link to the delivered events in the task's timeline."""
        url = page_url("a2a_tasks_task_change", row.task_id)
        return format_html(
            '<a href="{}?from={}#event-{}">{}</a>', url, row.number, row.number, cells.events(row)
        )

    @admin.display(description="last answer")
    def last(self, row: Delivery) -> str:
        """Show the result and the duration of the last attempt, and its number if it is not the first."""
        attempt = last_attempt(row)
        if attempt is None:
            return ""
        said = took(attempt.seconds) + (f", attempt {row.attempts}" if row.attempts > 1 else "")
        return format_html('{} <span class="a2a-quiet">{}</span>', cells.answer(attempt), said)

    @admin.display(description="next attempt")
    def next(self, row: Delivery) -> str:
        """Show the moment of the next attempt."""
        if row.status != DeliveryStatus.PENDING:
            return ""
        return moment(row.next_at) or "at once"

    @admin.display(description="next attempt")
    def next_in(self, row: Delivery) -> str:
        """Show the time until the next attempt."""
        if row.status != DeliveryStatus.PENDING:
            return ""
        now, wait = timezone.now(), wait_of(row)
        if wait.why in {Why.WEBHOOK_DISABLED, Why.RECEIVER_DISABLED}:
            return "when enabled"
        at = max(filter(None, (row.next_at, wait.until)), default=now)
        if at <= now:
            return "at once"
        return format_html('<span title="{}">in {}</span>', moment(at), duration(at - now))

    # -- the page

    def read_page(self, request: HttpRequest, row: Delivery) -> dict[str, Any]:
        """Show the body and the attempts below the fields."""
        found = Delivery.objects.annotate(whole=select_body())
        head, length = found.values_list(select_start("whole"), size("whole")).get(pk=row.pk)
        newest = list(row.tries.order_by("-pk")[:ATTEMPTS])
        may = self.has_send_permission(request)
        pending = row.status == DeliveryStatus.PENDING
        return {
            "body": format_body(head, length),
            "tries": newest[::-1],
            "most": ATTEMPTS,
            "may_retry": may and pending,
            "may_replay": may and not pending and row.config_id is not None,
        }

    # -- retry and replay

    def has_send_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may retry and replay. The permission `change delivery` means only this here."""
        return request.user.has_perm("a2a_push.change_delivery")

    @admin.action(description="Send selected deliveries again", permissions=["send"])
    def replay_selected(
        self, request: HttpRequest, queryset: QuerySet[Delivery]
    ) -> HttpResponse | None:
        """Ask for confirmation, then send the newest AT_ONCE of the settled deliveries again."""
        settled = queryset.exclude(status=DeliveryStatus.PENDING).filter(config__isnull=False)
        return self._act_on_selection(request, settled, _replay_question, self._replay)

    @admin.action(description="Try selected deliveries now", permissions=["send"])
    def retry_selected(
        self, request: HttpRequest, queryset: QuerySet[Delivery]
    ) -> HttpResponse | None:
        """Ask for confirmation, then try the newest AT_ONCE of the pending deliveries now."""
        pending = queryset.filter(status=DeliveryStatus.PENDING)
        return self._act_on_selection(request, pending, _retry_question, self._retry)

    def _act_on_selection(
        self, request: HttpRequest, chosen: QuerySet[Delivery], question: Asks, act: Acts
    ) -> HttpResponse | None:
        rows = list(chosen.order_by("-pk")[: AT_ONCE + 1])
        if rows and not is_confirmed(request):
            return ask(self, request, question(rows, request.get_full_path()))
        act(request, rows[:AT_ONCE])
        if len(rows) > AT_ONCE:
            note = f"Only {AT_ONCE} are sent at once; there are more among the selected ones."
            self.message_user(request, note, messages.WARNING)
        return None

    @method_decorator(require_POST)
    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then send the delivery again."""
        return self._act_on_one(request, object_id, _replay_question, self._replay)

    @method_decorator(require_POST)
    def retry_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then try the delivery now."""
        return self._act_on_one(request, object_id, _retry_question, self._retry)

    def _act_on_one(
        self, request: HttpRequest, object_id: str, question: Asks, act: Acts
    ) -> HttpResponse:
        row, back = self.read_form(request, object_id, may=self.has_send_permission(request))
        if not is_confirmed(request):
            return ask(self, request, question([row], back))
        act(request, [row])
        return HttpResponseRedirect(back)

    def _replay(self, request: HttpRequest, rows: list[Delivery]) -> None:
        count = replay([row.pk for row in rows])
        self._record(request, rows if count else [], "Sent again.")
        self._tell(request, count, len(rows) - count, "Will be sent again", "Cannot be sent again")

    def _retry(self, request: HttpRequest, rows: list[Delivery]) -> None:
        tried = [row for row in rows if retry_now(row.pk)]
        self._record(request, tried, "Tried at once.")
        self._tell(
            request,
            len(tried),
            len(rows) - len(tried),
            "Is tried now",
            "No longer waits, or may not be sent",
        )

    def _record(self, request: HttpRequest, rows: list[Delivery], text: str) -> None:
        if rows and request.user.pk is not None:
            LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, text)

    def _tell(self, request: HttpRequest, done: int, left: int, did: str, left_out: str) -> None:
        if done:
            self.message_user(request, f"{did}: {done}.", messages.SUCCESS)
        if left or not done:
            self.message_user(request, f"{left_out}: {left}.", messages.WARNING)


def _replay_question(rows: list[Delivery], back: str) -> Question:
    """Return the question before a replay of settled deliveries."""
    rows = rows[:AT_ONCE]
    delivered = sum(row.status == DeliveryStatus.DELIVERED for row in rows)
    warnings = preview_warnings(Delivery.objects.filter(pk__in=[row.pk for row in rows]))
    if delivered:
        warnings.append(f"Delivered before, and will come twice: {delivered}.")
    return Question(
        title="Send again?",
        text=f"{_write_count(rows)} will be sent again under the same webhook-id, from the beginning of the schedule.",
        warnings=warnings,
        verb="Send again",
        back=back,
    )


def _retry_question(rows: list[Delivery], back: str) -> Question:
    """Return the question before a retry of pending deliveries."""
    rows = rows[:AT_ONCE]
    now = timezone.now()
    shut = sum(bool(row.receiver.probe_at and row.receiver.probe_at > now) for row in rows)
    off = sum(is_switched_off(row.receiver) for row in rows)
    warnings = [HELD_BACK.format(off)] if off else []
    if shut:
        warnings.append(
            f"Will still wait, because the breaker of their receiver is open: {shut}. Enable the receiver to send now."
        )
    return Question(
        title="Try now?",
        text=f"{_write_count(rows)} will be tried at once instead of later. It counts as an attempt; the schedule goes on after it.",
        warnings=warnings,
        verb="Try now",
        back=back,
    )


def _write_count(rows: list[Delivery]) -> str:
    return "1 delivery" if len(rows) == 1 else f"{len(rows)} deliveries"
