"""Work for people as the page has it: which tasks wait, since when, for what, and who sees to them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet
from django.utils import timezone

from a2a_tasks.admin.excerpt import text_of
from a2a_tasks.admin.shown import beginning, duration, moment, shown, size
from a2a_tasks.admin.staff import within
from a2a_tasks.models import Assignment, HandedSecret, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.waiting import KINDS, Place, after, waiting

__all__ = ["WHO", "Asked", "Line", "Page", "line", "page"]

#: Tasks on one page: each brings a form.
LINES = 25
WHO = {"all": "everybody's", "mine": "mine", "free": "nobody's"}
_User = AbstractBaseUser | AnonymousUser


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the page is asked to show."""

    who: str = "all"
    agent: str = ""
    kind: str = ""
    place: Place | None = None

    @classmethod
    def of(cls, said: Mapping[str, str]) -> Asked:
        """From an address; what makes no sense is left out."""
        who, kind = said.get("who", ""), said.get("kind", "")
        return cls(
            who=who if who in WHO else "all",
            agent=said.get("agent", "")[:64],
            kind=kind if kind in KINDS else "",
            place=_place(said.get("after", "")),
        )

    def query(self, **changes: str) -> str:
        """The address of the same page, changed; without a place unless one is named."""
        said = {"who": self.who, "agent": self.agent, "kind": self.kind, **changes}
        said = {
            name: text for name, text in said.items() if text and (name, text) != ("who", "all")
        }
        return f"?{urlencode(said)}"

    def rows(self, user: _User) -> QuerySet[Task]:
        """The tasks it is about, as far as there are any for the user, from the beginning."""
        rows = within(waiting(self.kind), user)
        if self.agent:
            rows = rows.filter(agent=self.agent)
        if self.who == "mine":
            return rows.filter(assignment__user=user.pk)
        return rows.filter(assignment__isnull=True) if self.who == "free" else rows


def _place(said: str) -> Place | None:
    since, _, key = said.partition("_")
    try:
        at = datetime.datetime.fromisoformat(since)
        if at.tzinfo is None or not 0 <= int(key) < 2**63:
            return None
        return Place(at.astimezone(datetime.UTC), int(key))  # OverflowError before the year 1
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, kw_only=True)
class Line:
    """A task that waits."""

    task: Task
    #: What its status says; None if that is too long to be read here.
    said: str | None
    assignment: Assignment | None
    secret: HandedSecret | None

    @property
    def text(self) -> str | None:
        """The same; of who asks for a secret only why, and not the link, which is for whom it concerns."""
        return self.secret.reason if self.secret and self.names else self.said

    @property
    def kind(self) -> str:
        """The state as a word."""
        return TaskState(self.task.state).word

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.task.maker or self.task.owner or "anonymous"

    @property
    def age(self) -> str:
        """How long it has been waiting."""
        return duration(timezone.now() - self.task.status_at)

    @property
    def since(self) -> str:
        """Since when."""
        return moment(self.task.status_at)

    @property
    def person(self) -> str:
        """Who sees to it; empty = nobody."""
        return self.assignment.user.get_username() if self.assignment else ""

    @property
    def names(self) -> list[str]:
        """The secrets it waits to be handed; empty = none."""
        if self.task.state != TaskState.AUTH_REQUIRED or not self.secret or self.secret.handed_at:
            return []
        return list(json.loads(self.secret.names))

    @property
    def link_works(self) -> bool:
        """Can they still be handed over by the link that was given away?"""
        return self.secret is not None and self.secret.expires_at > timezone.now()


@dataclass(frozen=True, kw_only=True)
class Page:
    """Lines, and the address of the next ones; empty at the end."""

    lines: list[Line]
    following: str


def _lines(rows: QuerySet[Task]) -> QuerySet[Task]:
    """With all that a line shows, in one query, and nothing that is long or secret."""
    rows = rows.select_related("assignment__user", "handed_secret").annotate(
        said=beginning("status_message"), length=size("status_message")
    )
    return rows.only(
        *("public_id", "tenant", "owner", "maker", "agent", "state", "status_at", "last_event"),
        *("assignment__user__username", "assignment__at", "handed_secret__names"),
        *("handed_secret__reason", "handed_secret__handed_at", "handed_secret__expires_at"),
    )


def _line(task: Task) -> Line:
    said: Any = task
    body = shown(said.said, said.length)
    text = "" if body is None else (text_of(body.document) if not body.is_cut else None)
    return Line(
        task=task,
        said=text,
        assignment=getattr(task, "assignment", None),
        secret=getattr(task, "handed_secret", None),
    )


def page(asked: Asked, user: _User) -> Page:
    """A page of the queue, oldest first."""
    rows = asked.rows(user)
    if asked.place:
        rows = after(rows, asked.place)
    found = list(_lines(rows)[: LINES + 1])
    more = len(found) > LINES
    last = found[LINES - 1] if more else None
    place = {"after": f"{last.status_at.isoformat()}_{last.pk}"} if last else {}
    return Page(
        lines=[_line(task) for task in found[:LINES]],
        following=asked.query(**place) if place else "",
    )


def line(task: int) -> Line | None:
    """One task, waiting or not; None if it is gone."""
    found = _lines(Task.objects.filter(pk=task)).first()
    return _line(found) if found else None
