"""Lists over tables of millions of rows: newest first by primary key, counted up to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from a2a_console.search.bounded_rows import count_bounded

if TYPE_CHECKING:
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator  # not subscriptable while running

__all__ = ["BoundedPaginator", "NewestFirst"]


class BoundedPaginator(_Paginator):
    """A paginator of the first COUNTED rows, so that neither the count nor an offset grows with the table."""

    @cached_property
    def count(self) -> int:
        """Count up to the bound."""
        rows = self.object_list
        return count_bounded(rows) if isinstance(rows, QuerySet) else len(rows)


class NewestFirst(ChangeList):
    """A changelist in the order of the primary key; `?o=` cannot request an order without an index.

    A value that is no choice of its filter is refused (400): otherwise all rows would be shown, exported or cancelled
    instead of the intended ones. A filter whose only choice is the empty one accepts any text.
    """

    def get_filters(self, request: HttpRequest) -> Any:
        """Return the filters of Django. Raises DisallowedModelAdminLookup for a value that is no choice."""
        found = super().get_filters(request)
        for spec in found[0]:
            if isinstance(spec, SimpleListFilter) and (value := spec.value()):
                offered = {str(key) for key, _ in spec.lookup_choices}
                if value not in offered and offered != {""}:
                    raise DisallowedModelAdminLookup(f"no {spec.parameter_name} is {value[:100]!r}")
        return found

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Return the only order."""
        return ["-pk"]
