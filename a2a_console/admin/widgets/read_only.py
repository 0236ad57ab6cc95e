"""The base of all read-only admins of the host's tables."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib.admin.options import ShowFacets
from django.db.models import Model
from django.http import HttpRequest
from django.template.loader import render_to_string

from a2a_console.admin.widgets.paging import NewestFirst
from a2a_console.admin.widgets.staff import TenantAdmin

__all__ = ["ReadOnlyAdmin", "badge"]

_M = TypeVar("_M", bound=Model)


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

    def has_add_permission(self, request: HttpRequest, *_: Any) -> bool:
        """Refuse: the protocol creates rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Refuse: a row is derived from its events."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Refuse: only retention deletes rows."""
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestFirst]:
        """Return the changelist with a fixed order."""
        return NewestFirst

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filters only. Another lookup in the URL, `?memory__contains=`, would read the whole table."""
        return lookup in {getattr(known, "parameter_name", None) for known in self.list_filter}
