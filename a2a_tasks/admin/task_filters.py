"""The filters of the list of tasks. None of them asks the database: together they say what is looked for (`Selection`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.utils import timezone

from a2a_tasks.admin import filters, principals
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.marks import marks

__all__ = ["FILTERS", "Asking"]


class Asking(SimpleListFilter):
    """Says what is asked, and leaves the rows alone."""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """All of them."""
        return queryset

    def asked(self) -> dict[str, Any]:
        """Fields of the Selection."""
        return {str(self.parameter_name): self.value()} if self.value() else {}


class StateFilter(Asking, filters.StateFilter):
    """By state, or all that have not ended."""

    def asked(self) -> dict[str, Any]:
        """States as the store has them; one that is none asks nothing."""
        if self.value() == filters.UNFINISHED:
            return {"states": frozenset(TaskState) - TERMINAL}
        states = frozenset(state for state in TaskState if state.word == self.value())
        return {"states": states} if states else {}


class AgentFilter(Asking, filters.AgentFilter):
    """By agent."""


class CreatedFilter(Asking, filters.CreatedFilter):
    """By age."""

    def asked(self) -> dict[str, Any]:
        """From or up to a moment."""
        chosen = self.value()
        if chosen not in self.SPANS:
            return {}
        moment = timezone.now() - self.SPANS[chosen][1]
        return {"made_before" if chosen.startswith("older") else "made_after": moment}


class EndedFilter(Asking, filters.PeriodFilter):
    """By when they ended (index `task_ended`). It stands before the filter of states, which narrows it."""

    title = "ended"
    parameter_name = "ended"

    def asked(self) -> dict[str, Any]:
        """Ended since a moment."""
        since = self.since()
        return {} if since is None else {"states": TERMINAL, "changed_after": since}


class DialectFilter(Asking, filters.DialectFilter):
    """By the dialect it was made in."""

    title = "origin dialect"


class BindingFilter(Asking):
    """By the binding it came by."""

    title = "binding"
    parameter_name = "binding"

    def lookups(self, request: HttpRequest, model_admin: Any) -> filters.Choices:
        """List the bindings."""
        return [(binding.value, binding.value) for binding in Binding]


class MarkFilter(Asking):
    """By what other apps say of it."""

    title = "trouble"
    parameter_name = "mark"

    def lookups(self, request: HttpRequest, model_admin: Any) -> filters.Choices:
        """List the marks."""
        return [(mark.name, mark.words) for mark in marks()]


class _TextFilter(Asking):
    """By a text that is typed in."""

    template = "admin/a2a_tasks/task/text_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> filters.Choices:
        """There are too many to list."""
        return [("", "")]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """What the form shows, and what it keeps of the other filters."""
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
    """By exact tenant."""

    title = "tenant"
    parameter_name = "tenant"


class OwnerFilter(_TextFilter):
    """By whose it is, or who made it: a principal, or the name of a key."""

    title = "owner"
    parameter_name = "owner"

    def asked(self) -> dict[str, Any]:
        """The principal."""
        return {"owner": principals.principal_called(self.value() or "")} if self.value() else {}


class ContextFilter(_TextFilter):
    """By the id of the context."""

    title = "context id"
    parameter_name = "context"


FILTERS = (
    *(
        EndedFilter,
        StateFilter,
        AgentFilter,
        CreatedFilter,
        OwnerFilter,
        TenantFilter,
        ContextFilter,
    ),
    *(MarkFilter, BindingFilter, DialectFilter),
)
