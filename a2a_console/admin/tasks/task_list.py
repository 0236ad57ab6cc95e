"""The list of tasks: a Selection from the filters, in pages by primary key (`search/selection.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.text import Truncator

from a2a_console.admin.tasks.task_filters import UnknownFilter, read_filters, read_selection
from a2a_console.admin.tasks.time_strip import TimeStrip, draw_strip
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.excerpt import text_of
from a2a_console.admin.widgets.formatting import parse_body
from a2a_console.admin.widgets.paging import NewestFirst
from a2a_console.admin.widgets.staff import may_view
from a2a_console.excerpts import select_start
from a2a_console.search.bounded_rows import NEWEST, AtLeast, count_bounded
from a2a_console.search.key_ranges import last_key
from a2a_console.search.selection import SearchPage, Selection, page
from a2a_console.search.stuck_tasks import MAX_COUNT, find_stuck
from a2a_console.search.task_record import add_openings
from a2a_console.staff import may_see_traces, sees_all, tenants_of
from a2a_tasks.models import Run, Task
from a2a_tasks.protocol.titles import MAX_TITLE
from a2a_tasks.protocol.values import TaskState

__all__ = ["COLUMNS", "Tab", "TaskChangeList", "find_neighbours"]

BEFORE, AFTER, COLUMNS = "before", "after", "columns"
LARGEST = 2**63 - 1
#: The largest number of tasks that are searched for the next one of a list.
NEXT_READ = 10_000
#: The filters that the tabs stand for, by their labels.
TABS: dict[str, dict[str, str]] = {
    "All": {},
    "Running": {"state": "running"},
    "Waiting for people": {"state": "waiting"},
    "Stuck": {"stuck": "any"},
    "Failed": {"state": "failed"},
    "Completed": {"state": "completed"},
}


class Tab(NamedTuple):
    """A link to the tasks in some states; the number is empty if the list is narrowed by other filters."""

    label: str
    url: str
    number: str
    is_chosen: bool


class TaskChangeList(NewestFirst):
    """The changelist of tasks. Its pages have no numbers, only links to newer and older ones."""

    CURSORS = (BEFORE, AFTER)
    page: SearchPage
    selection: Selection
    #: The reason for which the address cannot be read; then there is no row.
    fault = ""
    tabs: list[Tab]
    strip: TimeStrip | None = None

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Return the parameters without the cursors and the columns, which are no filters."""
        found = super().get_filters_params(params)
        return {n: value for n, value in found.items() if n not in {*self.CURSORS, COLUMNS}}

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Return the query string without the cursors: other filters begin at their first page."""
        return super().get_query_string(new_params, [*(remove or ()), *self.CURSORS])

    def get_filters(self, request: HttpRequest) -> Any:
        """Read the selection. There are no filters of Django."""
        conditions: dict[str, Any] = {}
        try:
            conditions = read_filters(self.get_filters_params())
        except UnknownFilter as fault:
            if request.method == "POST":
                raise DisallowedModelAdminLookup(str(fault)) from fault
            self.fault = str(fault)
        self.selection = Selection(**conditions)
        return [], False, {}, False, False

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Task]:
        """Return the tasks of the selection, on all pages."""
        rows: QuerySet[Task] = super().get_queryset(request, exclude_parameters)
        return rows.none() if self.fault else self.selection.of(rows)

    def get_results(self, request: HttpRequest) -> None:
        """Read the requested page. The total is not counted."""
        spans = Selection(
            made_after=self.selection.made_after, made_before=self.selection.made_before
        )
        cursors = {name: _number(request.GET.get(name, "")) for name in self.CURSORS}
        self.page = page(self.queryset, spans, size=self.list_per_page, **cursors)
        _add_values(request, self.page.items)
        stuck = find_stuck()
        for task in self.page.items:
            if task.pk in stuck:
                task.why = stuck[task.pk].words  # type: ignore[attr-defined]
        self.tabs = list(self._list_tabs(request, stuck))
        self.strip = draw_strip(self.queryset, spans, self.get_query_string)
        shown = len(self.page.items)
        more = self.page.older is not None or self.page.newer is not None
        self.result_list = self.page.items
        self.result_count = AtLeast(shown) if more else shown
        self.full_result_count = None
        self.can_show_all, self.multi_page, self.show_admin_actions = False, False, bool(shown)
        self.show_full_result_count = False
        self.paginator = None

    def _list_tabs(self, request: HttpRequest, stuck: Any) -> Iterator[Tab]:
        """Yield the tabs. A user who sees some tenants gets the numbers among the newest tasks."""
        given = self.get_filters_params()
        counts = not (given.keys() - {"state", "stuck"}) and not self.params.get(SEARCH_VAR)
        rows = self.root_queryset.select_related(None).order_by("-pk")
        if not sees_all(request.user):
            rows = rows.filter(pk__gt=last_key(Task.objects.all()) - NEWEST)
        for label, wanted in TABS.items():
            number = ""
            if counts:
                by_key = "stuck" in wanted
                found = count_bounded(
                    rows.filter(pk__in=stuck)
                    if by_key
                    else Selection(**read_filters(wanted)).of(rows)
                )
                is_cut = isinstance(found, AtLeast) or (by_key and found == MAX_COUNT)
                number = f"{found:,}" + ("+" if is_cut else "")
            chosen = {n: given[n][-1] for n in ("state", "stuck") if n in given} == wanted
            yield Tab(label, self.get_query_string(wanted, ["state", "stuck"]), number, chosen)

    @property
    def chips(self) -> list[tuple[str, str, str]]:
        """The filters, beside those that a tab stands for: name, value, and the link without it."""
        chosen = next((tab.label for tab in self.tabs if tab.is_chosen), "All")
        return [
            (name, values[-1], self.get_query_string(remove=[name]))
            for name, values in self.get_filters_params().items()
            if name not in TABS[chosen]
        ]

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The parameters that a form sends besides the search."""
        kept = {n: v for n, v in self.filter_params.items() if n not in {*self.CURSORS, SEARCH_VAR}}
        return [(name, value) for name, values in kept.items() for value in values]

    @property
    def top(self) -> int:
        """The newest key of all tasks, after which new ones are counted; 0 on later pages."""
        return 0 if self.page.newer is not None else last_key(Task.objects.all())

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


def find_neighbours(rows: QuerySet[Task], task: Task, query: str) -> dict[str, int | None]:
    """Return the keys of the tasks above and below one in the list with this query, among the next NEXT_READ tasks."""
    try:
        wanted = read_selection(QueryDict(query))
    except UnknownFilter:
        wanted = Selection()
    keys = wanted.of(rows).select_related(None).values_list("pk", flat=True)
    above = keys.filter(pk__gt=task.pk, pk__lte=task.pk + NEXT_READ).order_by("pk")
    below = keys.filter(pk__lt=task.pk, pk__gte=task.pk - NEXT_READ).order_by("-pk")
    return {"above": above.first(), "below": below.first()}


def _add_values(request: HttpRequest, tasks: list[Task]) -> None:
    """Give each task the values of its columns that are in other tables.

    Of a failure, users who may not see traces get what its client was told.
    """
    names = principals.names({task.created_by or task.owner for task in tasks})
    sees = may_view(request, Run) and may_see_traces(tenants_of(request.user))
    failed = (task for task in tasks if task.state == TaskState.FAILED)
    told = [task.pk for task in failed if not (sees and task.status_text)]
    rows = Task.objects.filter(pk__in=told).values_list("pk", select_start("status_message"))
    heads = dict(rows) if told else {}
    for values in add_openings(tasks):
        text = text_of(parse_body(heads[values.pk])) if values.pk in heads else values.status_text
        values.why = Truncator(text).chars(MAX_TITLE)
        values.caller_name = names.get(values.created_by or values.owner, "")


def _number(text: str) -> int | None:
    digits = text.isascii() and text.isdigit()
    return min(int(text[:20]), LARGEST) if digits else None
