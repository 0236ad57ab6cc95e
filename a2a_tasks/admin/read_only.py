"""What all admins of the host's tables share: everything is shown to whoever may view, and nothing can be changed by hand."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib.admin.options import ShowFacets
from django.db.models import Model
from django.http import HttpRequest
from django.template.loader import render_to_string

from a2a_tasks.admin.paging import BoundedPaginator, NewestFirst
from a2a_tasks.admin.staff import TenantAdmin

__all__ = ["ReadOnlyAdmin", "badge"]

_M = TypeVar("_M", bound=Model)


def badge(word: str) -> str:
    """Render a state or a status as a word with a coloured dot."""
    return render_to_string("admin/a2a_tasks/badge.html", {"word": word})


class ReadOnlyAdmin(TenantAdmin[_M]):
    """Rows of the host's machinery: the store alone writes them (architecture, law 2)."""

    ordering = ("-pk",)
    paginator = BoundedPaginator
    show_full_result_count = False
    #: Facets count the whole table once for each choice.
    show_facets = ShowFacets.NEVER
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 200

    def has_add_permission(self, request: HttpRequest, *_: Any) -> bool:
        """Refuse: rows come from the protocol."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Refuse: a row is the fold of its events."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Refuse: retention deletes, people do not."""
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestFirst]:
        """Return the list whose order cannot be changed."""
        return NewestFirst

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filters. A lookup typed into the address, `?memory__contains=`, would read the whole table."""
        return lookup in {getattr(known, "parameter_name", None) for known in self.list_filter}
