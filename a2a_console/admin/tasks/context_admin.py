"""Contexts in the admin: conversations with their tasks."""

from __future__ import annotations

from typing import Any

from csp.constants import SELF
from csp.decorators import csp_update
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.text import Truncator

from a2a_console.admin.tasks.context_memory import read_memory
from a2a_console.admin.tasks.conversation import conversation
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.columns import column
from a2a_console.admin.widgets.filters import CreatedFilter, NewestAgentFilter
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows
from a2a_console.admin.widgets.staff import demand, may_view
from a2a_console.site import site
from a2a_console.times import moment
from a2a_tasks.models import Context, Task

__all__ = ["ContextAdmin"]

#: The largest number of tasks on the page of a context.
TASKS = 100


@admin.register(Context, site=site)
class ContextAdmin(ReadOnlyAdmin[Context]):
    """The list and the page of contexts."""

    list_display = ("short_id", "agent", "caller", "tenant", "created", "updated")
    list_filter = (NewestAgentFilter, CreatedFilter)
    search_fields = ("public_id",)
    search_help_text = "A context id, complete."
    fields = ("agent", "caller", "tenant", "created", "updated")
    own_views = ("<int:object_id>/conversation/",)
    change_form_template = "admin/a2a_tasks/context/page.html"

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by exact id."""
        return rows.filter(public_id=wanted)

    def read_page(self, request: HttpRequest, row: Context) -> dict[str, Any]:
        """Show the tasks and what agents keep below the fields, to users who may view tasks."""
        if not may_view(request, Task):
            return {}
        tasks = (
            Task.objects.filter(context=row)
            .only("public_id", "state", "origin_dialect", "created_at", "status_at")
            .order_by("-status_at", "-pk")[: TASKS + 1]
        )
        shown = {"tasks": tasks[:TASKS], "has_more": len(tasks) > TASKS, "most": TASKS}
        return {**shown, "memory": read_memory(row)}

    @method_decorator(csp_update({"media-src": [SELF]}))
    def conversation_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the conversation in the context's tasks, to users who may view tasks."""
        context = self.get_object(request, object_id)
        demand(self.has_view_permission(request, context) and may_view(request, Task))
        return self.show(
            request,
            "a2a_tasks/context/conversation",
            "Conversation",
            subtitle=context.public_id,
            original=context,
            conversation=conversation(context, request.GET.get("before", "")),
        )

    short_id = column("context id", lambda row: Truncator(row.public_id).chars(40))
    caller = column("owner", lambda row: principals.link_of(row, row.owner))
    created = column("created", lambda row: moment(row.created_at))
    updated = column("updated", lambda row: moment(row.updated_at))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[principals.NamingList]:
        """Return the list that shows principals by name."""
        return principals.NamingList

    @staticmethod
    def principal_of(row: Context) -> str:
        """Return the owner."""
        return row.owner
