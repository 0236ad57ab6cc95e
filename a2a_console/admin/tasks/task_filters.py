"""The filters of the list of tasks. None of them queries the database: together they make a `Selection`.

A new filter: docs/architecture.md, "Where to change what".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.utils import timezone

from a2a_console.admin.widgets import filters, principals
from a2a_console.search.task_flags import MARKS
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["FILTERS", "SearchFilter"]


class SearchFilter(SimpleListFilter):
    """A filter that gives fields of the Selection and leaves the queryset alone."""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Return the queryset as it is."""
        return queryset

    def read_search(self) -> dict[str, Any]:
        """Return fields of the Selection."""
        return {str(self.parameter_name): self.value()} if self.value() else {}


class TaskStateFilter(SearchFilter, filters.StateFilter):
    """A filter by state, or by all states before the end."""

    def read_search(self) -> dict[str, Any]:
        """Return the states; an unknown word narrows nothing."""
        if self.value() == filters.UNFINISHED:
            return {"states": frozenset(TaskState) - TERMINAL}
        states = frozenset(state for state in TaskState if state.word == self.value())
        return {"states": states} if states else {}


class SearchAgentFilter(SearchFilter, filters.AgentFilter):
    """A filter by agent."""


class TaskCreatedFilter(SearchFilter, filters.CreatedFilter):
    """A filter by age."""

    def read_search(self) -> dict[str, Any]:
        """Return a bound of the creation: from or up to a moment."""
        chosen = self.value()
        if chosen not in self.SPANS:
            return {}
        moment = timezone.now() - self.SPANS[chosen][1]
        return {"made_before" if chosen.startswith("older") else "made_after": moment}


class EndedFilter(SearchFilter, filters.PeriodFilter):
    """A filter by the moment of the end (index `task_ended`). It precedes the filter of states, which narrows it."""

    title = "ended"
    parameter_name = "ended"

    def read_search(self) -> dict[str, Any]:
        """Return the terminal states and the moment since which the tasks ended."""
        since = self.since()
        return {} if since is None else {"states": TERMINAL, "changed_after": since}


class TaskDialectFilter(SearchFilter, filters.DialectFilter):
    """A filter by the dialect in which the task was created."""

    title = "origin dialect"


class BindingFilter(SearchFilter, filters.ChoiceFilter):
    """A filter by the binding of the first request."""

    title = "binding"
    parameter_name = "binding"
    offered = tuple((binding.value, binding.value) for binding in Binding)


class MarkFilter(SearchFilter, filters.ChoiceFilter):
    """A filter by marks of trouble."""

    title = "trouble"
    parameter_name = "mark"
    offered = tuple((mark.name, mark.words) for mark in MARKS.values())


class _TextFilter(SearchFilter, filters.ChoiceFilter):
    """A filter by a text that the user enters."""

    template = "admin/a2a_tasks/task/text_filter.html"
    #: One empty choice: there are too many values to list.
    offered = (("", ""),)

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Yield the context of the form, with the values of the other filters."""
        name = str(self.parameter_name)
        kept = [
            (key, value)
            for key, values in changelist.filter_params.items()
            for value in values
            if key not in {name, *changelist.CURSORS}  # type: ignore[attr-defined]  # TaskList
        ]
        clear = changelist.get_query_string(remove=[name])
        yield {"name": name, "value": self.value() or "", "kept": kept, "clear": clear}


class TenantFilter(_TextFilter):
    """A filter by exact tenant."""

    title = "tenant"
    parameter_name = "tenant"


class OwnerFilter(_TextFilter):
    """A filter by owner or maker: a principal, or the name of a key."""

    title = "owner"
    parameter_name = "owner"

    def read_search(self) -> dict[str, Any]:
        """Return the principal."""
        return {"owner": principals.find_principal(self.value() or "")} if self.value() else {}


class ContextFilter(_TextFilter):
    """A filter by the id of the context."""

    title = "context id"
    parameter_name = "context"


FILTERS = (
    *(EndedFilter, TaskStateFilter, SearchAgentFilter, TaskCreatedFilter, OwnerFilter),
    *(TenantFilter, ContextFilter, MarkFilter, BindingFilter, TaskDialectFilter),
)
