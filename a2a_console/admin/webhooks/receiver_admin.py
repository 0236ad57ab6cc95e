"""Receivers in the admin: health of each, enabling and disabling, and the replay of a span of deliveries."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from a2a_console.admin.webhooks.endpoint_figures import (
    describe_breaker,
    draw_deliveries,
    read_attempts,
)
from a2a_console.admin.webhooks.filters import ReceiverHealthFilter
from a2a_console.admin.webhooks.preview import preview_warnings
from a2a_console.admin.webhooks.sent_notifications import newest_deliveries
from a2a_console.admin.webhooks.span import SpanForm
from a2a_console.admin.widgets.columns import ago, column
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows, badge
from a2a_console.admin.widgets.staff import may_view
from a2a_console.search.bounded_rows import count_bounded, newest
from a2a_console.site import site
from a2a_console.times import moment, took
from a2a_console.webhooks.receiver_health import describe_health
from a2a_push.models import Attempt, Delivery, DeliveryStatus, Receiver
from a2a_push.operations.sample_event import send_sample
from a2a_push.sender import AttemptRefused
from a2a_push.store.receivers import read
from a2a_push.store.replays import replay
from a2a_push.store.retries import is_switched_off
from a2a_push.store.switches import disable, enable

__all__ = ["ReceiverAdmin"]

#: The largest number of characters of an operator's reason.
REASON = 200


@admin.register(Receiver, site=site)
class ReceiverAdmin(ReadOnlyAdmin[Receiver]):
    """The list and the page of receivers."""

    list_display = (
        *("address_and_tenant", "health_badge", "why", "delivered", "failed"),
        *("succeeded", "failing", "latency"),
    )
    list_filter = (ReceiverHealthFilter,)
    search_fields = ("address",)
    search_help_text = "Part of a URL. Searches the newest 100,000 receivers."
    fields = (
        *("health_badge", "why", "until", "in_a_row", "openings", "pause"),
        *("delivered", "failed", "success", "failure", "latency", "pending", "dead"),
        *("tenant", "created"),
    )
    own_views = (
        "<int:object_id>/disable/",
        "<int:object_id>/enable/",
        "<int:object_id>/test/",
        "<int:object_id>/replay/",
    )
    follows = True
    change_form_template = "admin/a2a_push/receiver/page.html"

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by a piece of the address."""
        address = wanted.partition("?")[0]
        return newest(rows).filter(address__contains=address) if address else rows

    # -- columns and fields

    @admin.display(description="receiver, tenant")
    def address_and_tenant(self, row: Receiver) -> str:
        """Show the address, cut because the client chose it, and below it the tenant, which has its own receiver."""
        shown = format_html('<span title="{}">{}</span>', row.address[:500], row.address[:80])
        return format_html('{}<br><span class="a2a-quiet">{}</span>', shown, row.tenant)

    health_badge = column("breaker", lambda row: badge(describe_health(row).word))
    why = column("reason", lambda row: describe_health(row).why)
    until = column("until", lambda row: moment(describe_health(row).until))
    in_a_row = column("failures since the last success", lambda row: str(read(row).in_a_row))
    openings = column("times the breaker opened", lambda row: str(read(row).openings))
    success = column("last success", lambda row: moment(row.last_success_at) or "never")
    failure = column("last failure", lambda row: moment(row.last_failure_at) or "never")
    succeeded = column("last success", lambda row: ago(row.last_success_at))
    failing = column("last failure", lambda row: ago(row.last_failure_at))
    latency = column(
        "last attempt took",
        lambda row: "" if row.last_seconds is None else took(row.last_seconds),
    )
    pending = column("pending", lambda row: _count(row, DeliveryStatus.PENDING))
    dead = column("dead", lambda row: _count(row, DeliveryStatus.DEAD))
    created = column("created", lambda row: moment(row.created_at))

    @admin.display(description="Retry-After until")
    def pause(self, row: Receiver) -> str:
        """Show the end of the pause that the receiver asked for, if it is not over."""
        ahead = row.paused_until is not None and row.paused_until > timezone.now()
        return moment(row.paused_until) if ahead else ""

    # -- the page

    def read_page(self, request: HttpRequest, row: Receiver) -> dict[str, Any]:
        """Show the newest deliveries and the form of a replay below the fields."""
        may, off = self.has_switch_permission(request), row.disabled_at is not None
        well = row.probe_at is None and row.paused_until is None
        return {
            "deliveries": newest_deliveries(request, receiver=row.pk),
            "standing": describe_breaker(row),
            "chart": draw_deliveries(row) if may_view(request, Delivery) else None,
            "attempts": read_attempts(row) if may_view(request, Attempt) else None,
            "may_test": may,
            "may_disable": may and not is_switched_off(row),
            "may_enable": may and (off or not well),
            "span": SpanForm() if _may_replay(request) else None,
            "zone": timezone.get_current_timezone_name(),
        }

    # -- enable and disable

    def has_switch_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may enable and disable. The permission `change receiver` means only this here."""
        return request.user.has_perm("a2a_push.change_receiver")

    @method_decorator(require_POST)
    def disable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then disable the receiver, with a reason for later readers."""
        row, back = self.read_form(request, object_id, may=self.has_switch_permission(request))
        if not is_confirmed(request):
            question = Question(
                title="Disable the receiver?",
                text=f"Nothing is sent to {row.address} until a user enables it. Deliveries that become due meanwhile are dead at once, "
                "with your reason, and can be sent again.",
                verb="Disable",
                back=back,
                is_dangerous=True,
            )
            return ask(self, request, question)
        text = " ".join(request.POST.get("reason", "").split())[:REASON]
        reason = text or "switched off"
        if disable(row.pk, reason):
            self.log_change(request, row, f"Disabled: {reason}.")
            self.message_user(request, "The receiver is disabled.", messages.SUCCESS)
        else:
            self.message_user(request, "It was disabled already.", messages.WARNING)
        return HttpResponseRedirect(back)

    @method_decorator(require_POST)
    def enable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then enable the receiver."""
        row, back = self.read_form(request, object_id, may=self.has_switch_permission(request))
        if not is_confirmed(request):
            question = Question(
                title="Enable the receiver?",
                text=f"{row.address} is treated as a new receiver: its circuit breaker is closed, and a pause that it asked for is over. "
                "Dead deliveries are not sent until somebody sends them again.",
                verb="Enable",
                back=back,
            )
            return ask(self, request, question)
        if enable(row.pk):
            self.log_change(request, row, "Enabled.")
            self.message_user(request, "The receiver is enabled.", messages.SUCCESS)
        else:
            self.message_user(request, "Nothing kept it from being sent to.", messages.WARNING)
        return HttpResponseRedirect(back)

    @method_decorator(require_POST)
    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send a test event, and say what was answered."""
        row, back = self.read_form(request, object_id, may=self.has_switch_permission(request))
        outcome = send_sample(row)
        if outcome is None:
            note = "No webhook leads here any more, so there is nothing to sign a test event for."
            self.message_user(request, note, messages.WARNING)
        else:
            result, level = f"answered {outcome.status}", messages.SUCCESS
            if isinstance(outcome, AttemptRefused):
                result, level = outcome.detail, messages.ERROR
            said = f": {outcome.excerpt.strip()[:REASON]}" if outcome.excerpt.strip() else ""
            self.message_user(
                request, f"Test event: {result} after {took(outcome.seconds)}{said}", level
            )
        return HttpResponseRedirect(back)

    @method_decorator(require_POST)
    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then send the deliveries to the receiver again that were created in a span."""
        row, back = self.read_form(request, object_id, may=_may_replay(request))
        form = SpanForm(request.POST)
        if not form.is_valid():
            for text in form.wrong():
                self.message_user(request, text, messages.ERROR)
            return HttpResponseRedirect(back)
        chosen = form.read_selection(receiver=row.pk)
        if not is_confirmed(request):
            count = count_bounded(chosen.rows())
            warnings = preview_warnings(chosen.rows())
            if not chosen.only_dead:
                warnings.append("What was delivered before will come twice.")
            question = Question(
                title="Send again?",
                text=f"{form.describe()}: {count}. They are sent again under the same webhook-id, from the beginning of the schedule.",
                warnings=warnings,
                verb="Send again",
                back=back,
            )
            return ask(self, request, question)
        done = replay(chosen.keys())
        self.log_change(request, row, f"Sent again, {form.describe()}: {done}.")
        level = messages.SUCCESS if done else messages.WARNING
        self.message_user(request, f"Will be sent again: {done}.", level)
        return HttpResponseRedirect(back)


def _count(row: Receiver, status: DeliveryStatus) -> str:
    mine = Delivery.objects.filter(receiver=row, status=status)
    return str(count_bounded(mine.order_by("-pk")))


def _may_replay(request: HttpRequest) -> bool:
    return request.user.has_perm("a2a_push.change_delivery")
