"""Workers: which processes are there, what each is for, and what it holds. Nothing here can be changed by hand."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from a2a_tasks.admin.read_only import badge
from a2a_tasks.admin.shown import duration, moment
from a2a_tasks.admin.staff import HostWideAdmin, may_view
from a2a_tasks.agents import registry
from a2a_tasks.models import Run, Worker
from a2a_tasks.store import workers

__all__ = ["WorkerAdmin", "state_of"]

#: Runs that the page of a process lists.
HELD = 100


def state_of(told: workers.Seen) -> str:
    """How a process stands, as a word: alive, draining, dead or replaced (dead, and another has begun in its place)."""
    if not told.alive:
        return "replaced" if told.replaced else "dead"
    return "draining" if told.worker.draining else "alive"


@admin.register(Worker)
class WorkerAdmin(HostWideAdmin[Worker]):
    """The list and the page of processes."""

    fields = (
        *("state", "kind", "queue_names", "load", "version", "seen", "started"),
        *("host", "pid", "agent_names"),
    )
    change_form_template = "admin/a2a_tasks/worker/page.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: a process says itself that it is there."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Worker | None = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Worker | None = None) -> bool:
        """Refuse: it would come back with the next beat."""
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """All there are on one page: they are few."""
        self._check_view(request)
        told = workers.seen()
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Workers",
            "workers": [(one, state_of(one), duration(one.silence)) for one in told],
            "alive": sum(one.alive for one in told),
            "queues": workers.serving(registry.queues_in_use(), told),
            "patience": duration(workers.patience()),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/a2a_tasks/worker/list.html", context)

    def _check_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show what it holds below the fields, to whoever may see runs."""
        row: Worker = context["original"]
        shows = may_view(request, Run)
        held = list(workers.holding(row.name)[: HELD + 1]) if shows else []
        context.update(held=held[:HELD], more=len(held) > HELD, shows=shows)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="state")
    def state(self, row: Worker) -> str:
        """Show how it stands as a word."""
        return badge(state_of(_seen(row)))

    @admin.display(description="queues")
    def queue_names(self, row: Worker) -> str:
        """Name what it takes from."""
        return ", ".join(row.queues)

    @admin.display(description="agents")
    def agent_names(self, row: Worker) -> str:
        """Name the agents its code has, with the versions of their cards."""
        return ", ".join(f"{slug} {version}" for slug, version in sorted(row.agents.items()))

    @admin.display(description="runs")
    def load(self, row: Worker) -> str:
        """Say how many it carried when it was seen."""
        return f"{row.running} of {row.slots}" if row.slots else ""

    @admin.display(description="last sign of life")
    def seen(self, row: Worker) -> str:
        """Say how long ago."""
        return f"{duration(_seen(row).silence)} ago"

    @admin.display(description="began")
    def started(self, row: Worker) -> str:
        """Show the moment to the second."""
        return moment(row.started_at)


def _seen(row: Worker) -> workers.Seen:
    """The row with its silence, by the database's clock; asked once."""
    found: workers.Seen | None = getattr(row, "_told", None)
    if found is None:
        found = next((one for one in workers.seen() if one.worker.pk == row.pk), None)
        found = found or workers.Seen(row, workers.patience())
        row._told = found  # type: ignore[attr-defined]  # noqa: SLF001 - kept with the row it is about
    return found
