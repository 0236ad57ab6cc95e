"""The list of tasks: a Selection from the filters, in pages by primary key (`search/selection.py`)."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import QuerySet
from django.http import HttpRequest

from a2a_console.admin.tasks.task_filters import SearchFilter
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.paging import AtLeast, NewestFirst
from a2a_console.search.key_ranges import last_key
from a2a_console.search.selection import SearchPage, Selection, page
from a2a_console.search.task_record import openings
from a2a_tasks.models import Task

__all__ = ["TaskChangeList"]

BEFORE, AFTER = "before", "after"
LARGEST = 2**63 - 1


class TaskChangeList(NewestFirst):
    """The changelist of tasks. Its pages have no numbers, only links to newer and older ones."""

    CURSORS = (BEFORE, AFTER)
    page: SearchPage
    selection: Selection

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Return the parameters without the cursors, which are no filters."""
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in self.CURSORS}

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Return the query string without the cursors: other filters begin at their first page."""
        return super().get_query_string(new_params, [*(remove or ()), *self.CURSORS])

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Task]:
        """Return the tasks of the selection, on all pages."""
        rows = cast("QuerySet[Task]", super().get_queryset(request, exclude_parameters))
        conditions: dict[str, Any] = {}
        for spec in self.filter_specs:
            conditions |= cast("SearchFilter", spec).read_search()
        self.selection = Selection(**conditions)
        return self.selection.of(rows)

    def get_results(self, request: HttpRequest) -> None:
        """Read the requested page. The total is not counted."""
        spans = Selection(
            made_after=self.selection.made_after, made_before=self.selection.made_before
        )
        cursors = {name: _number(request.GET.get(name, "")) for name in self.CURSORS}
        self.page = page(self.queryset, spans, size=self.list_per_page, **cursors)
        began = openings([task.pk for task in self.page.items])
        names = principals.names({task.maker or task.owner for task in self.page.items})
        for task in self.page.items:  # values for the columns
            task.opening = began.get(task.pk, "")  # type: ignore[attr-defined]
            task.caller_name = names.get(task.maker or task.owner, "")  # type: ignore[attr-defined]
        shown = len(self.page.items)
        more = self.page.older is not None or self.page.newer is not None
        self.result_list = self.page.items
        self.result_count = AtLeast(shown) if more else shown
        self.full_result_count = None
        self.can_show_all, self.multi_page, self.show_admin_actions = False, False, bool(shown)
        self.show_full_result_count = False
        self.paginator = None

    @property
    def older(self) -> str:
        """The link to the page of older tasks; empty = there is none."""
        key = self.page.older
        return "" if key is None else self.get_query_string({BEFORE: key})

    @property
    def newer(self) -> str:
        """The link to the page of newer tasks; empty = there is none."""
        key = self.page.newer
        return "" if key is None else self.get_query_string({AFTER: key})

    @property
    def newest(self) -> str:
        """The link to the first page."""
        return self.get_query_string()

    @property
    def looked_at(self) -> str:
        """The number of the newest keys that the search has covered so far."""
        return f"{last_key(Task.objects.all()) - (self.page.older or 1) + 1:,}"

    @property
    def is_narrowed(self) -> bool:
        """True if a filter or a search narrows the list."""
        return self.selection.narrows or bool(self.params.get(SEARCH_VAR))


def _number(text: str) -> int | None:
    digits = text.isascii() and text.isdigit()
    return min(int(text[:20]), LARGEST) if digits else None
