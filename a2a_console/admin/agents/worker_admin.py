"""Workers in the admin: the processes of the host, with the queues and runs of each. The pages are read-only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from a2a_console.admin.widgets.columns import column
from a2a_console.admin.widgets.read_only import badge
from a2a_console.admin.widgets.staff import HostWideAdmin, demand, may_view, refuse
from a2a_console.site import site
from a2a_console.times import duration, moment
from a2a_tasks.agents import registry
from a2a_tasks.models import Run, Worker
from a2a_tasks.store import workers

__all__ = ["WorkerAdmin"]

#: The largest number of runs on the page of a process.
HELD = 100


@admin.register(Worker, site=site)
class WorkerAdmin(HostWideAdmin[Worker]):
    """The list and the page of processes."""

    fields = (
        *("state", "kind", "queue_names", "load", "version", "seen", "started"),
        *("host", "pid", "agent_names"),
    )
    change_form_template = "admin/a2a_tasks/worker/page.html"

    #: A process registers itself, and updates its own row. One that is deleted would come back with the next heartbeat.
    has_add_permission = has_change_permission = has_delete_permission = refuse

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the processes on one page: few live, and the store limits the others."""
        demand(self.has_view_permission(request))
        seen = workers.list_seen()
        return self.show(
            request,
            "a2a_tasks/worker/list",
            "Workers",
            workers=[(one, one.state, duration(one.silence)) for one in seen],
            alive=sum(one.alive for one in seen),
            queues=workers.count_serving(registry.queues_in_use(), seen),
            patience=duration(workers.patience()),
            **(extra_context or {}),
        )

    def read_page(self, request: HttpRequest, row: Worker) -> dict[str, Any]:
        """Show the runs of the process below the fields, to users who may view runs."""
        shows = may_view(request, Run)
        runs = list(workers.list_runs(row.name)[: HELD + 1]) if shows else []
        return {"held": runs[:HELD], "more": len(runs) > HELD, "shows": shows}

    state = column("state", lambda row: badge(_read_seen(row).state))
    queue_names = column("queues", lambda row: ", ".join(row.queues))
    agent_names = column(
        "agents",
        lambda row: ", ".join(f"{slug} {version}" for slug, version in sorted(row.agents.items())),
    )
    load = column("runs", lambda row: f"{row.running} of {row.slots}" if row.slots else "")
    seen = column("last heartbeat", lambda row: f"{duration(_read_seen(row).silence)} ago")
    started = column("began", lambda row: moment(row.started_at))


def _read_seen(row: Worker) -> workers.WorkerStatus:
    """Return the row with the time since its last heartbeat, by the database's clock. The row caches the answer."""
    found: workers.WorkerStatus | None = getattr(row, "_told", None)
    if found is None:
        found = workers.look_at(row)
        row._told = found  # type: ignore[attr-defined]  # noqa: SLF001 - a cache on the row
    return found
