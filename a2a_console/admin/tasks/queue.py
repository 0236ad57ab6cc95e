"""The inbox of the admin: the tasks that wait for an operator, with their questions and assignees."""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Case, QuerySet, TextField, Value, When
from django.utils import timezone

from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.excerpt import text_of
from a2a_console.admin.widgets.formatting import format_body
from a2a_console.excerpts import select_start, size
from a2a_console.queue.form_fields import FormField, list_fields, read_form
from a2a_console.queue.waiting import KINDS, QueuePlace, after, list_waiting
from a2a_console.search.task_record import add_openings
from a2a_console.staff import name_lookup, within
from a2a_console.times import duration, moment
from a2a_tasks.models import Assignment, HandedSecret, Task
from a2a_tasks.protocol.forms import FORM
from a2a_tasks.protocol.values import TaskState

__all__ = ["WHO", "InboxQuery", "InboxRow", "InboxPage", "get_row", "get_rows", "page", "read_key"]

#: Tasks on one page; each has a form.
LINES = 25
#: The largest number of characters of a question whose form is shown.
LONGEST = 100_000
LONGEST_KEY = 19
WHO = {"all": "all", "mine": "assigned to me", "free": "unassigned"}
_User = AbstractBaseUser | AnonymousUser


@dataclass(frozen=True, kw_only=True)
class InboxQuery:
    """The parameters of the inbox page."""

    who: str = "all"
    agent: str = ""
    kind: str = ""
    place: QueuePlace | None = None
    #: The key of the task that is open; 0 = the first.
    task: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> InboxQuery:
        """Read the parameters of a URL. Leave out invalid values."""
        who, kind = query.get("who", ""), query.get("kind", "")
        return cls(
            who=who if who in WHO else "all",
            agent=query.get("agent", "")[:64],
            kind=kind if kind in KINDS else "",
            place=_read_place(query.get("after", "")),
            task=read_key(query.get("task", "")),
        )

    def query(self, **changes: str) -> str:
        """Return the query string of the same page with changes. It has a place only if the changes name one."""
        query = {"who": self.who, "agent": self.agent, "kind": self.kind, **changes}
        query = {
            name: text for name, text in query.items() if text and (name, text) != ("who", "all")
        }
        return f"?{urlencode(query)}"

    def rows(self, user: _User) -> QuerySet[Task]:
        """Return the tasks of the query that the user may see, from the first page on."""
        rows = within(list_waiting(self.kind), user)
        if self.agent:
            rows = rows.filter(agent=self.agent)
        if self.who == "mine":
            return rows.filter(assignment__user=user.pk)
        return rows.filter(assignment__isnull=True) if self.who == "free" else rows


def read_key(text: str) -> int:
    """Return a primary key; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < LONGEST_KEY else 0


def _read_place(text: str) -> QueuePlace | None:
    since, _, key = text.partition("_")
    try:
        at = datetime.datetime.fromisoformat(since)
        if at.tzinfo is None or not 0 <= int(key) < 2**63:
            return None
        return QueuePlace(at.astimezone(datetime.UTC), int(key))  # OverflowError before the year 1
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, kw_only=True)
class InboxRow:
    """A task that waits for an operator."""

    task: Task
    #: The text of its status message; None if that is too long to be read here.
    said: str | None
    assignment: Assignment | None
    secret: HandedSecret | None
    #: The name of the caller that owns the task; empty = the caller has no name.
    caller: str = ""
    #: The beginning of the request.
    title: str = ""
    #: The form of the question; None = it has none.
    form: Mapping[str, Any] | None = None
    #: The values that were posted before.
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The primary key, for ids on the page."""
        return str(self.task.pk)

    @property
    def fields(self) -> list[FormField]:
        """The fields of the form; none if there is none."""
        return list_fields(self.form, self.given) if self.form else []

    @property
    def approval(self) -> FormField | None:
        """The field that alone is required, and is answered by yes or no; None = the form has none."""
        required = [one for one in self.fields if one.required]
        return required[0] if [one.kind for one in required] == ["yes-no"] else None

    def asks_as(self, other: InboxRow) -> bool:
        """Return whether one answer fits both, because they have the same agent and form; without a form, the same text."""
        texts = self.form is not None or self.text == other.text
        return texts and (self.task.agent, self.form) == (other.task.agent, other.form)

    @property
    def text(self) -> str | None:
        """The question. For a request for secrets it is only the reason, because the link is for its recipient."""
        return self.secret.reason if self.secret and self.names else self.said

    @property
    def kind(self) -> str:
        """The state as a word."""
        return TaskState(self.task.state).word

    @property
    def owner(self) -> str:
        """The caller by name, as a link to the caller's tasks."""
        principal = _principal(self.task)
        return principals.link_to(principal, self.caller) if principal else "anonymous"

    @property
    def age(self) -> str:
        """The time for which the task has been waiting."""
        return duration(timezone.now() - self.task.status_at)

    @property
    def since(self) -> str:
        """The moment since which the task has been waiting."""
        return moment(self.task.status_at)

    @property
    def person(self) -> str:
        """The name of the assignee; empty = the task is unassigned."""
        return self.assignment.user.get_username() if self.assignment else ""

    @property
    def names(self) -> list[str]:
        """The names of the secrets that the task waits for; empty = none."""
        if self.task.state != TaskState.AUTH_REQUIRED or not self.secret or self.secret.handed_at:
            return []
        return list(json.loads(self.secret.names))

    @property
    def link_works(self) -> bool:
        """True if the link still accepts the secrets."""
        return self.secret is not None and self.secret.expires_at > timezone.now()


@dataclass(frozen=True, kw_only=True)
class InboxPage:
    """The rows of a page, and the query string of the next page; empty at the end."""

    lines: list[InboxRow]
    following: str
    #: The row that is open, with its answer; None = nothing waits.
    chosen: InboxRow | None
    #: The key of the task that follows it; empty = none.
    then: str


def _narrow(rows: QuerySet[Task]) -> QuerySet[Task]:
    """Narrow the columns, in one query, to those that a row shows. None of them is very long or secret."""
    rows = rows.select_related("assignment__user", "handed_secret").annotate(
        said=select_start("status_message"), length=size("status_message")
    )
    has_form = When(status_message__contains=FORM, length__lte=LONGEST, then="status_message")
    rows = rows.annotate(asked=Case(has_form, default=Value(""), output_field=TextField()))
    return rows.only(
        *("public_id", "tenant", "owner", "created_by", "agent", "state"),
        *("status_at", "last_event"),
        *(name_lookup("assignment__user"), "assignment__at", "handed_secret__names"),
        *("handed_secret__reason", "handed_secret__handed_at", "handed_secret__expires_at"),
    )


def _principal(task: Task) -> str:
    return task.created_by or task.owner


def _make_row(
    task: Task, names: Mapping[str, str], given: Mapping[str, str] | None = None
) -> InboxRow:
    row: Any = task
    form, body = read_form(row.asked), format_body(row.said, row.length)
    text = "" if body is None else (_read_text(body.document, form) if not body.is_cut else None)
    return InboxRow(
        task=task,
        said=text,
        assignment=getattr(task, "assignment", None),
        secret=getattr(task, "handed_secret", None),
        caller=names.get(_principal(task), ""),
        title=row.opening or task.public_id,
        form=form,
        given=given or {},
    )


def _read_text(message: Any, form: Mapping[str, Any] | None) -> str:
    """Return the text of a question. Its form is shown as fields, and not named."""
    if form is not None and isinstance(message, dict):
        parts = [part for part in message.get("parts", ()) if "data" not in part]
        message = message | {"parts": parts}
    return text_of(message)


def page(filters: InboxQuery, user: _User) -> InboxPage:
    """Return a page of the inbox, oldest first."""
    rows = filters.rows(user)
    if filters.place:
        rows = after(rows, filters.place)
    found = list(_narrow(rows)[: LINES + 1])
    more = len(found) > LINES
    last = found[LINES - 1] if more else None
    lines = _make_rows(found[:LINES])
    place = {"after": f"{last.status_at.isoformat()}_{last.pk}"} if last else {}
    keys = [one.task.pk for one in lines]
    chosen = lines[keys.index(filters.task)] if filters.task in keys else None
    if chosen is None and filters.task:
        chosen = next(iter(_make_rows(_narrow(filters.rows(user).filter(pk=filters.task)))), None)
    chosen = chosen or (lines[0] if lines else None)
    at = keys.index(chosen.task.pk) if chosen and chosen.task.pk in keys else -1
    after_it = keys[at + 1 : at + 2]
    return InboxPage(
        lines=lines,
        following=filters.query(**place) if place else "",
        chosen=chosen,
        then=str(after_it[0]) if after_it else "",
    )


def get_row(task: int, given: Mapping[str, str] | None = None) -> InboxRow | None:
    """Return the row of one task, waiting or not, with posted values; None if the task is gone."""
    return next(iter(get_rows([task], given)), None)


def get_rows(tasks: Collection[int], given: Mapping[str, str] | None = None) -> list[InboxRow]:
    """Return the rows of these tasks, waiting or not, with posted values."""
    return _make_rows(_narrow(Task.objects.filter(pk__in=tasks).order_by("status_at", "pk")), given)


def _make_rows(tasks: Iterable[Task], given: Mapping[str, str] | None = None) -> list[InboxRow]:
    found = add_openings(list(tasks))
    names = principals.names({_principal(task) for task in found})
    return [_make_row(task, names, given) for task in found]
