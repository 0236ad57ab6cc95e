"""The list of tasks: what is looked for, and pages of it by key (`store/selection.py`)."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import QuerySet
from django.http import HttpRequest

from a2a_tasks.admin import principals
from a2a_tasks.admin.paging import AtLeast, NewestFirst
from a2a_tasks.admin.task_filters import Asking
from a2a_tasks.models import Task
from a2a_tasks.store.selection import Page, Selection, page
from a2a_tasks.store.sheet import openings
from a2a_tasks.store.spans import last_key

__all__ = ["TaskList"]

BEFORE, AFTER = "before", "after"
LARGEST = 2**63 - 1


class TaskList(NewestFirst):
    """Pages without numbers: newer ones, and older ones."""

    CURSORS = (BEFORE, AFTER)
    page: Page
    selection: Selection

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Without what says which page: that is no filter."""
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in self.CURSORS}

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Of another question there is another first page."""
        return super().get_query_string(new_params, [*(remove or ()), *self.CURSORS])

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Task]:
        """Those that are meant, on all pages."""
        rows = cast("QuerySet[Task]", super().get_queryset(request, exclude_parameters))
        asked: dict[str, Any] = {}
        for spec in self.filter_specs:
            asked |= cast("Asking", spec).asked()
        self.selection = Selection(**asked)
        return self.selection.of(rows)

    def get_results(self, request: HttpRequest) -> None:
        """The page that is asked for. How many there are in all, nobody counts."""
        spans = Selection(
            made_after=self.selection.made_after, made_before=self.selection.made_before
        )
        cursors = {name: _number(request.GET.get(name, "")) for name in self.CURSORS}
        self.page = page(self.queryset, spans, size=self.list_per_page, **cursors)
        began = openings([task.pk for task in self.page.items])
        known = principals.names({task.maker or task.owner for task in self.page.items})
        for task in self.page.items:  # for their columns
            task.opening = began.get(task.pk, "")  # type: ignore[attr-defined]
            task.caller_name = known.get(task.maker or task.owner, "")  # type: ignore[attr-defined]
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
        """The link to the next page; empty = there is none."""
        key = self.page.older
        return "" if key is None else self.get_query_string({BEFORE: key})

    @property
    def newer(self) -> str:
        """The link to the page before this one."""
        key = self.page.newer
        return "" if key is None else self.get_query_string({AFTER: key})

    @property
    def newest(self) -> str:
        """The link to the first page."""
        return self.get_query_string()

    @property
    def looked_at(self) -> str:
        """Where the page stopped looking, as how many of the newest keys."""
        return f"{last_key(Task.objects.all()) - (self.page.older or 1) + 1:,}"

    @property
    def is_narrowed(self) -> bool:
        """Is anything asked?"""
        return self.selection.narrows or bool(self.params.get(SEARCH_VAR))


def _number(text: str) -> int | None:
    digits = text.isascii() and text.isdigit()
    return min(int(text[:20]), LARGEST) if digits else None
