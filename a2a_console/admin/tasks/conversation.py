"""The conversation of a context, or of one task: messages and artifacts, task after task, in pages from the end.

It holds the messages, the questions of the agent before the client's next message, and the status message of each
task. Messages about progress are in the timeline of the task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a_console.admin.tasks.timeline import NAME, WHOLE, WHOLES, member
from a2a_console.admin.widgets.formatting import escape_name, format_body, parse_body
from a2a_console.admin.widgets.json_tree import Allowance
from a2a_console.admin.widgets.parts import Reading, ShownPart, join_texts, read, render_parts
from a2a_console.excerpts import LIMIT, select_start, size
from a2a_console.site import page_url
from a2a_tasks.models import Artifact, Context, Event, Message, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState

__all__ = ["Chapter", "ConversationPage", "conversation", "read_chapter"]

#: The largest number of tasks that a conversation is read from: those that changed last.
TASKS = 500
#: The largest numbers of messages and of artifacts on one page.
MESSAGES, ARTIFACTS = 60, 60
#: The newest events in which pieces of an artifact that grows are looked for.
PIECES = 200
#: Most artifacts of a page that are shown while they grow.
GROWING = 3


class Position(NamedTuple):
    """The place of a message: the key of its task and its number."""

    task: int
    number: int


@dataclass(frozen=True, kw_only=True)
class ConversationEntry:
    """One entry of a conversation: a message or an artifact."""

    #: client or agent
    who: str
    #: The artifact's name; empty for a message.
    name: str = ""
    at: datetime | None = None
    number: int = 0
    parts: Sequence[ShownPart]
    is_too_long: bool = False
    #: True for an artifact that is still being written.
    grows: bool = False


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """The entries of one task."""

    task: Task
    state: str
    said: Sequence[ConversationEntry]
    #: True if the task has older messages, which are not here.
    has_earlier: bool = False


@dataclass(frozen=True, kw_only=True)
class ConversationPage:
    """One page of a conversation."""

    chapters: Sequence[Chapter]
    #: The end of the page before; empty = this page begins the conversation.
    earlier: str
    #: True if the page is the end of the conversation.
    is_last: bool
    #: True if there are older tasks that were not read.
    has_more_tasks: bool
    most_tasks: int = TASKS


def read_chapter(task: Task) -> Chapter:
    """Return the end of the conversation of one task."""
    rows = _messages([task.pk], None)
    said = _Page(rows[:MESSAGES][::-1], None).read_messages().get(task.pk, [])
    has_earlier = len(rows) > MESSAGES
    return Chapter(task=task, state=TaskState(task.state).word, said=said, has_earlier=has_earlier)


def conversation(context: Context, before: str) -> ConversationPage:
    """Return the page that ends before this place (`task.number`); the last page if it is empty."""
    columns = ("public_id", "state", "status_at", "created_at")
    newest = Task.objects.filter(context=context).order_by("-status_at", "-pk").only(*columns)
    found = list(newest[: TASKS + 1])
    tasks = {task.pk: task for task in found[:TASKS]}
    place = _read_position(before)
    rows = _messages(tasks, place)
    page = _Page(rows[:MESSAGES][::-1], place)
    chapters = [
        Chapter(task=tasks[key], state=TaskState(tasks[key].state).word, said=said)
        for key, said in page.read_messages().items()
    ]
    first = page.rows[0] if len(rows) > MESSAGES else None
    return ConversationPage(
        chapters=chapters,
        earlier=f"{first['task_id']}.{first['number']}" if first else "",
        is_last=place is None,
        has_more_tasks=len(found) > TASKS,
    )


def _read_position(text: str) -> Position | None:
    words = text.split(".")
    # The database would refuse a number that is longer than any key.
    if len(words) != 2 or len(words[0]) > 18 or len(words[1]) > 9:  # noqa: PLR2004
        return None
    if not all(word.isascii() and word.isdigit() for word in words):
        return None
    return Position(int(words[0]), int(words[1]))


def _messages(tasks: Iterable[int], place: Position | None) -> Sequence[Mapping[str, Any]]:
    """Return the messages before the place, the last first, and one more than a page has."""
    rows = Message.objects.filter(task_id__in=list(tasks))
    if place is not None:
        earlier = Q(task_id__lt=place.task) | Q(task_id=place.task, number__lt=place.number)
        rows = rows.filter(earlier)
    return list(
        rows.annotate(head=select_start("body"), length=size("body"))
        .order_by("-task_id", "-number")
        .values("task_id", "number", "role", "created_at", "head", "length")[: MESSAGES + 1]
    )


@dataclass
class _Page:
    """The messages of one page, with the questions, artifacts and status messages around them."""

    rows: Sequence[Mapping[str, Any]]
    place: Position | None
    allowance: Allowance = field(default_factory=Allowance, kw_only=True)

    def read_messages(self) -> Mapping[int, list[ConversationEntry]]:
        """Return the entries by task."""
        whole = _read_cut(Message.objects.all(), self.rows)
        questions = self._questions()
        messages: dict[int, list[ConversationEntry]] = defaultdict(list)
        for row in self.rows:
            key = Position(row["task_id"], row["number"])
            messages[key.task] += questions.get(key, [])
            message = self._make_message(row, f"event/{key.number}", whole.get(key))
            messages[key.task].append(message)
        # The page with the last message of a task also has its artifacts and its status message.
        ended = [task for task in messages if self.place is None or task != self.place.task]
        for task, message in [*self._results(ended), *self._standings(ended)]:
            messages[task].append(message)
        return messages

    def _make_message(self, row: Mapping[str, Any], where: str, whole: Any) -> ConversationEntry:
        body = format_body(row["head"], row["length"])
        document = whole if whole is not None else body.document if body else None
        document = member(member(document, "status"), "message") or document
        is_client = row.get("role") == Role.USER
        if not is_client and isinstance(parts := member(document, "parts"), list):
            document = {"parts": [{"text": ""} if _is_form(part) else part for part in parts]}
        return ConversationEntry(
            who="client" if is_client else "agent",
            at=row["created_at"],
            number=row["number"],
            parts=self._parts(row["task_id"], document, where),
            is_too_long=document is None and bool(body and body.is_cut),
        )

    def _parts(self, task: int, holder: Any, where: str) -> Sequence[ShownPart]:
        base = page_url("a2a_tasks_task_change", task).removesuffix("change/")
        reading = Reading(base=base, all_markdown=True, allowance=self.allowance)
        make = join_texts if where.startswith("artifact/") else render_parts
        return make(read(holder, where, reading), reading)

    def _questions(self) -> Mapping[Position, list[ConversationEntry]]:
        """Return the question of the agent just before a message of the client, by that message.

        Questions in the history are left out: they are messages of the page already. Tasks that were answered before
        the history held questions have them in their events alone (docs/decisions/0001).
        """
        questions = Q()
        for row in self.rows:
            if row["role"] == Role.USER and row["number"] > 1:
                questions |= Q(task_id=row["task_id"], number=row["number"] - 1)
        if not questions:
            return {}
        kept = Message.objects.filter(task=OuterRef("task"), number=OuterRef("number"))
        rows = (
            Event.objects.filter(~Exists(kept), questions, kind=EventKind.STATUS)
            .annotate(head=select_start("body"), length=size("body"))
            .values("task_id", "number", "created_at", "head", "length")
        )
        messages = (self._make_message(row, f"event/{row['number']}", None) for row in rows)
        pairs = zip((row["task_id"] for row in rows), messages, strict=True)
        return {
            Position(task, one.number + 1): [one]
            for task, one in pairs
            if one.parts or one.is_too_long
        }

    def _results(self, tasks: Sequence[int]) -> Iterable[tuple[int, ConversationEntry]]:
        """Yield the artifacts of the tasks."""
        rows = list(
            Artifact.objects.filter(task_id__in=tasks)
            .annotate(
                head=select_start("body"), length=size("body"), name=select_start("artifact_id")
            )
            .order_by("task_id", "position")
            .values("task_id", "position", "name", "first_event", "head", "length")[:ARTIFACTS]
        )
        whole = _read_cut(Artifact.objects.all(), rows, "position")
        growing = [row for row in rows if not row["length"]][-GROWING:]
        for row in rows:
            task, position = row["task_id"], row["position"]
            body = format_body(row["head"], row["length"])
            document = whole.get(Position(task, position), body.document if body else None)
            grows = row in growing
            if grows:
                document = {"parts": _read_growing(task, row["name"], row["first_event"])}
            parts = self._parts(task, document, f"artifact/{position}")
            entry = ConversationEntry(
                who="agent",
                name=escape_name(row["name"], NAME),
                number=row["first_event"],
                parts=parts,
                is_too_long=not parts,
                grows=grows,
            )
            yield task, entry

    def _standings(self, tasks: Sequence[int]) -> Iterable[tuple[int, ConversationEntry]]:
        """Yield the status messages of the tasks."""
        rows = (
            Task.objects.filter(pk__in=tasks)
            .exclude(status_message="")
            .annotate(head=select_start("status_message"), length=size("status_message"))
            .values("pk", "status_at", "last_event", "head", "length")
        )
        for row in rows:
            about = {"task_id": row["pk"], "number": 0, "created_at": row["status_at"]}
            yield row["pk"], self._make_message({**row, **about}, "status/0", None)


def _is_form(part: Any) -> bool:
    """Return whether the part is the form of a question, which is a form on the page."""
    return isinstance(member(member(part, "data"), "form"), dict)


def _read_growing(task: int, name: str, first: int) -> list[Any]:
    """Return the last parts of an artifact that is still being written, whose pieces are in the events."""
    rows = Event.objects.filter(task_id=task, number__gte=first).order_by("-number")
    bodies = rows.values_list(select_start("body"), flat=True)[:PIECES]
    found: list[Any] = []
    for body in reversed(bodies):
        artifact = member(parse_body(body), "artifact")
        parts = member(artifact, "parts")
        if isinstance(parts, list) and member(artifact, "artifactId") == name:
            for part in parts:
                text, more = (member(each, "text") for each in (found[-1] if found else None, part))
                if isinstance(text, str) and isinstance(more, str):
                    found[-1] = {**found[-1], "text": text + more}
                else:
                    found.append(part)
    return found


def _read_cut(
    stored: QuerySet[Any], rows: Sequence[Mapping[str, Any]], key: str = "number"
) -> Mapping[Position, Any]:
    """Return the whole documents of the last few bodies that were cut but are not too long: they may hold pictures."""
    long = [row for row in rows if LIMIT < row["length"] <= WHOLE][-WHOLES:]
    places = Q()
    for row in long:
        places |= Q(**{"task_id": row["task_id"], key: row[key]})
    if not places:
        return {}
    bodies = stored.filter(places).values_list("task_id", key, "body")
    return {Position(task, number): parse_body(body) for task, number, body in bodies}
