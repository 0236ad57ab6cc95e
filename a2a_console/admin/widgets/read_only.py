"""The base of all read-only admins of the host's tables."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib.admin.options import ShowFacets
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string

from a2a_console.admin.widgets.paging import NewestFirst
from a2a_console.admin.widgets.staff import TenantAdmin, demand, refuse
from a2a_console.site import page_url

__all__ = ["ReadOnlyAdmin", "Rows", "badge"]

_M = TypeVar("_M", bound=Model)
Rows = QuerySet[Any]


def badge(word: str) -> str:
    """Render a state or a status with a coloured dot."""
    return render_to_string("admin/a2a_tasks/badge.html", {"word": word})


class ReadOnlyAdmin(TenantAdmin[_M]):
    """An admin of rows that only the store writes (architecture, law 2)."""

    ordering = ("-pk",)
    #: Facets would count the whole table once for each choice.
    show_facets = ShowFacets.NEVER
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 200
    #: True: the list and the page of a row show changes as they come (`live.html`).
    follows = False

    #: The protocol creates rows, events change them, and only retention deletes them.
    has_add_permission = has_change_permission = has_delete_permission = refuse

    def read_form(self, request: HttpRequest, object_id: str, *, may: bool) -> tuple[_M, str]:
        """Return the row that a posted form is about, and the URL of its page. Raises PermissionDenied, Http404."""
        demand(may)
        row = self.get_object(request, object_id)
        name = f"{self.opts.app_label}_{self.opts.model_name}_change"
        return row, page_url(name, row.pk)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[_M], search_term: str
    ) -> tuple[QuerySet[_M], bool]:
        """Return the rows that `search` finds; all if nothing is searched."""
        wanted = search_term.strip()
        return (self.search(request, queryset, wanted) if wanted else queryset), False

    def search(self, request: HttpRequest, rows: QuerySet[_M], wanted: str) -> QuerySet[_M]:
        """Return the rows that are meant by a text: by default, as Django finds them."""
        return super().get_search_results(request, rows, wanted)[0]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestFirst]:
        """Return the changelist with a fixed order."""
        return NewestFirst

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filters only. Another lookup in the URL, `?memory__contains=`, would read the whole table."""
        return lookup in {getattr(known, "parameter_name", None) for known in self.list_filter}
