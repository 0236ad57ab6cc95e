"""Lists over tables of millions of rows: newest first along the primary key, counted up to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from a2a_tasks.store.spans import last_key

if TYPE_CHECKING:
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator  # not subscriptable while running

__all__ = [
    "COUNTED",
    "NEWEST",
    "AtLeast",
    "BoundedPaginator",
    "NewestFirst",
    "bounded_count",
    "newest",
]

_M = TypeVar("_M", bound=Model)

#: A list says how many rows it has up to here, and pages no deeper; filters lead to the rest.
COUNTED = 10_000
#: How far back a filter looks that no index serves.
NEWEST = 100_000


class AtLeast(int):
    """A count that stopped at its bound; reads `10000+` wherever the admin prints it."""

    def __str__(self) -> str:
        return f"{int(self)}+"


def bounded_count(rows: QuerySet[Any]) -> int:
    """Count the rows, but at most COUNTED of them.

    The order is kept in the subquery on purpose: without it the planner may walk the table from its old end and
    pass a million rows before the first that a filter on new ones wants.
    """
    found = rows.values("pk")[: COUNTED + 1].count()
    return AtLeast(COUNTED) if found > COUNTED else found


class BoundedPaginator(_Paginator):
    """Pages through the first COUNTED rows, so that neither the count nor an offset grows with the table."""

    @cached_property
    def count(self) -> int:
        """Count up to the bound."""
        rows = self.object_list
        return bounded_count(rows) if isinstance(rows, QuerySet) else len(rows)


class NewestFirst(ChangeList):
    """A list in the order of the primary key; `?o=` cannot ask for an order that has no index.

    A value that a filter does not offer is refused (400): all rows would be shown, exported or cancelled in the place of
    those that were meant. A filter whose only choice is the empty one takes any text.
    """

    def get_filters(self, request: HttpRequest) -> Any:
        """Return Django's. Raises DisallowedModelAdminLookup for a value that is not offered."""
        found = super().get_filters(request)
        for spec in found[0]:
            if isinstance(spec, SimpleListFilter) and (value := spec.value()):
                offered = {str(key) for key, _ in spec.lookup_choices}
                if value not in offered and offered != {""}:
                    raise DisallowedModelAdminLookup(f"no {spec.parameter_name} is {value[:100]!r}")
        return found

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Return the one order."""
        return ["-pk"]


def newest(rows: QuerySet[_M]) -> QuerySet[_M]:
    """Narrow to the newest NEWEST keys."""
    return rows.filter(pk__gt=last_key(rows) - NEWEST)
