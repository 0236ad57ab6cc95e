"""The conversation of a context: what was said in its tasks and what came of it, task after task, read back from its end.

Said are messages; what an agent asked before the client's next message; and with what a task stands now. What an agent said of
its progress meanwhile is in the task's timeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from a2a_tasks.admin.json_tree import Allowance
from a2a_tasks.admin.parts import Part, Reading, finished, joined, read
from a2a_tasks.admin.shown import LIMIT, beginning, named, parsed, shown, size
from a2a_tasks.admin.timeline import NAME, WHOLE, WHOLES
from a2a_tasks.models import Artifact, Context, Event, Message, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState

__all__ = ["Conversation", "conversation"]

#: Tasks of a context that a conversation is read from: those that changed last.
TASKS = 500
#: Messages on one page, and artifacts.
MESSAGES, ARTIFACTS = 60, 60


class Place(NamedTuple):
    """Of a message, by keys."""

    task: int
    number: int


@dataclass(frozen=True, kw_only=True)
class Said:
    """Somebody's turn: a message or an artifact."""

    #: client or agent
    who: str
    #: The artifact's name; empty for a message.
    name: str = ""
    at: datetime | None = None
    number: int = 0
    parts: Sequence[Part]
    is_too_long: bool = False


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """What was said in one task."""

    task: Task
    state: str
    said: Sequence[Said]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One page of it."""

    chapters: Sequence[Chapter]
    #: Where the page before ends; empty = this one begins the conversation.
    earlier: str
    #: Is it the end of the conversation?
    is_last: bool
    #: Are there older tasks than were looked at?
    has_more_tasks: bool
    most_tasks: int = TASKS


def conversation(context: Context, before: str, *, all_markdown: bool) -> Conversation:
    """The page that ends before the place asked for (`task.number`); without a word the last one."""
    columns = ("public_id", "state", "status_at", "created_at")
    newest = Task.objects.filter(context=context).order_by("-status_at", "-pk").only(*columns)
    found = list(newest[: TASKS + 1])
    tasks = {task.pk: task for task in found[:TASKS]}
    place = _place(before)
    rows = _messages(tasks, place)
    page = _Page(rows[:MESSAGES][::-1], place, all_markdown=all_markdown)
    chapters = [
        Chapter(task=tasks[key], state=TaskState(tasks[key].state).word, said=said)
        for key, said in page.told().items()
    ]
    first = page.rows[0] if len(rows) > MESSAGES else None
    return Conversation(
        chapters=chapters,
        earlier=f"{first['task_id']}.{first['number']}" if first else "",
        is_last=place is None,
        has_more_tasks=len(found) > TASKS,
    )


def _place(asked: str) -> Place | None:
    words = asked.split(".")
    # Longer than any key; the database would refuse it.
    if len(words) != 2 or len(words[0]) > 18 or len(words[1]) > 9:  # noqa: PLR2004
        return None
    if not all(word.isascii() and word.isdigit() for word in words):
        return None
    return Place(int(words[0]), int(words[1]))


def _messages(tasks: Iterable[int], place: Place | None) -> Sequence[Mapping[str, Any]]:
    """The messages before the place, the last first, and one more."""
    rows = Message.objects.filter(task_id__in=list(tasks))
    if place is not None:
        earlier = Q(task_id__lt=place.task) | Q(task_id=place.task, number__lt=place.number)
        rows = rows.filter(earlier)
    return list(
        rows.annotate(head=beginning("body"), length=size("body"))
        .order_by("-task_id", "-number")
        .values("task_id", "number", "role", "created_at", "head", "length")[: MESSAGES + 1]
    )


@dataclass
class _Page:
    """The messages of one page, and what belongs to them."""

    rows: Sequence[Mapping[str, Any]]
    place: Place | None
    all_markdown: bool = field(kw_only=True)
    allowance: Allowance = field(default_factory=Allowance, kw_only=True)

    def told(self) -> Mapping[int, list[Said]]:
        """What was said, by task."""
        whole = _whole(Message.objects.all(), self.rows)
        questions = self._questions()
        told: dict[int, list[Said]] = defaultdict(list)
        for row in self.rows:
            key = Place(row["task_id"], row["number"])
            told[key.task] += questions.get(key, [])
            said = self._said(row, f"event/{key.number}", whole.get(key))
            told[key.task].append(said)
        # A task is told to its end on the page that has its last message.
        ended = [task for task in told if self.place is None or task != self.place.task]
        for task, said in [*self._results(ended), *self._standings(ended)]:
            told[task].append(said)
        return told

    def _said(self, row: Mapping[str, Any], where: str, whole: Any) -> Said:
        body = shown(row["head"], row["length"])
        document = whole if whole is not None else body.document if body else None
        if isinstance(document, dict) and isinstance(document.get("status"), dict):
            document = document["status"].get("message")
        return Said(
            who="client" if row.get("role") == Role.USER else "agent",
            at=row["created_at"],
            number=row["number"],
            parts=self._parts(row["task_id"], document, where),
            is_too_long=document is None and bool(body and body.is_cut),
        )

    def _parts(self, task: int, holder: Any, where: str) -> Sequence[Part]:
        base = reverse("admin:a2a_tasks_task_change", args=[task]).removesuffix("change/")
        reading = Reading(base=base, all_markdown=self.all_markdown, allowance=self.allowance)
        make = joined if where.startswith("artifact/") else finished
        return make(read(holder, where, reading), reading)

    def _questions(self) -> Mapping[Place, list[Said]]:
        """What the agent asked for just before a message of the client's, by that message.

        Questions that are in the history are left out: they are messages of the page already. Tasks that were answered
        before the history held questions have them in their events alone (docs/decisions/0177).
        """
        asked = Q()
        for row in self.rows:
            if row["role"] == Role.USER and row["number"] > 1:
                asked |= Q(task_id=row["task_id"], number=row["number"] - 1)
        if not asked:
            return {}
        kept = Message.objects.filter(task=OuterRef("task"), number=OuterRef("number"))
        rows = (
            Event.objects.filter(~Exists(kept), asked, kind=EventKind.STATUS)
            .annotate(head=beginning("body"), length=size("body"))
            .values("task_id", "number", "created_at", "head", "length")
        )
        said = (self._said(row, f"event/{row['number']}", None) for row in rows)
        pairs = zip((row["task_id"] for row in rows), said, strict=True)
        return {
            Place(task, one.number + 1): [one]
            for task, one in pairs
            if one.parts or one.is_too_long
        }

    def _results(self, tasks: Sequence[int]) -> Iterable[tuple[int, Said]]:
        """The artifacts of the tasks."""
        rows = list(
            Artifact.objects.filter(task_id__in=tasks)
            .annotate(head=beginning("body"), length=size("body"), name=beginning("artifact_id"))
            .order_by("task_id", "position")
            .values("task_id", "position", "name", "first_event", "head", "length")[:ARTIFACTS]
        )
        whole = _whole(Artifact.objects.all(), rows, "position")
        for row in rows:
            task, position = row["task_id"], row["position"]
            body = shown(row["head"], row["length"])
            document = whole.get(Place(task, position), body.document if body else None)
            parts = self._parts(task, document, f"artifact/{position}")
            name, number = named(row["name"], NAME), row["first_event"]
            yield (
                task,
                Said(who="agent", name=name, number=number, parts=parts, is_too_long=not parts),
            )

    def _standings(self, tasks: Sequence[int]) -> Iterable[tuple[int, Said]]:
        """With what words the tasks stand as they do."""
        rows = (
            Task.objects.filter(pk__in=tasks)
            .exclude(status_message="")
            .annotate(head=beginning("status_message"), length=size("status_message"))
            .values("pk", "status_at", "last_event", "head", "length")
        )
        for row in rows:
            about = {"task_id": row["pk"], "number": 0, "created_at": row["status_at"]}
            yield row["pk"], self._said({**row, **about}, "status/0", None)


def _whole(
    stored: QuerySet[Any], rows: Sequence[Mapping[str, Any]], key: str = "number"
) -> Mapping[Place, Any]:
    """The documents of the last few bodies that are longer than is read of each, but not too long: pictures are in them."""
    long = [row for row in rows if LIMIT < row["length"] <= WHOLE][-WHOLES:]
    places = Q()
    for row in long:
        places |= Q(**{"task_id": row["task_id"], key: row[key]})
    if not places:
        return {}
    bodies = stored.filter(places).values_list("task_id", key, "body")
    return {Place(task, number): parsed(body) for task, number, body in bodies}
