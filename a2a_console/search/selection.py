"""Selections of tasks by any of their attributes, in pages, for the admin, the API and commands.

A page scans the primary keys from the end of the page before, window by window, until it is full or has taken long
enough. So page 1,000 costs as much as page 1, nothing is counted, and a page with few tasks says how far it searched.
Conditions that match only a few tasks (an id, its beginning, rare words) are turned into primary keys first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import NamedTuple

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from a2a_console import sparse_index
from a2a_console.search import text_search
from a2a_console.search.key_ranges import find_next, find_span
from a2a_console.search.stuck_tasks import find_stuck
from a2a_console.search.task_flags import MARKS, MAX_COUNT
from a2a_console.search.task_reference import NUMBER, parse_task_reference
from a2a_tasks.models import Context, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = [
    *("HITS", "MIN_PREFIX_LENGTH", "STATES", "UNFINISHED"),
    *("SearchPage", "Selection", "page", "walk"),
]

UNFINISHED = frozenset(TaskState) - TERMINAL
#: The states that each word of a filter stands for.
STATES = {state.word: frozenset({state}) for state in TaskState} | {"unfinished": UNFINISHED}
#: The largest number of tasks for which an id, its beginning or words are turned into keys.
HITS = 5_000
#: The largest number of contexts with one id (of different owners) that are searched.
CONTEXTS = 1_000
#: The number of characters from which a search may be the beginning of an id.
MIN_PREFIX_LENGTH = 4
#: The number of keys in the first window of a page, and the factor by which each further window grows at most.
FIRST, GROWTH = 5_000, 10
#: Seconds after which a page that is not full stops the search.
PATIENCE = 0.12
#: The number of keys that one query of `walk` covers.
WINDOW = 100_000
#: The largest number of rows that one query of `walk` reads.
SLICE = 1_000
#: The conditions whose values the audit log does not get: the owner can be erased, and searched words are content.
UNTOLD = {"owner", "text", "search"}
_HIGHEST = "\U0010ffff"
_NOTHING = Q(pk__in=[])


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The conditions on a task. None and the empty set are no condition."""

    states: frozenset[TaskState] = frozenset()
    agent: str | None = None
    tenant: str | None = None
    #: The owner of the task, or the principal that created it.
    owner: str | None = None
    #: The id of its context.
    context: str | None = None
    dialect: str | None = None
    binding: str | None = None
    made_after: datetime | None = None
    made_before: datetime | None = None
    changed_after: datetime | None = None
    changed_before: datetime | None = None
    id: str | None = None
    id_prefix: str | None = None
    #: Words; each is the beginning of a word in the beginning of the first message.
    text: str | None = None
    #: An id, `#` and a number, or the id of a context; if none matches, the beginning of an id, or words.
    search: str | None = None
    #: The name of a mark (`search/task_flags.py`).
    mark: str | None = None
    #: The kind of reason for which a task is stuck, or "any" (`search/stuck_tasks.py`).
    stuck: str | None = None
    #: The duration so far, or up to the end.
    took_more: timedelta | None = None
    took_less: timedelta | None = None

    @property
    def narrows(self) -> bool:
        """True if there is any condition. An empty `id_prefix` is none: every id begins with it."""
        values = (getattr(self, field.name) for field in fields(self) if field.name != "id_prefix")
        return bool(self.id_prefix) or any(value not in (None, frozenset()) for value in values)

    def describe(self) -> dict[str, str]:
        """Return the selection in words, for the audit log."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        states = ",".join(sorted(state.word for state in self.states))
        plain = {
            name: "…" if name in UNTOLD else str(value)
            for name, value in values.items()
            if value is not None
        }
        return {**plain, "states": states} if states else plain | {"states": "any"}

    def among(self, states: frozenset[TaskState]) -> Selection:
        """Return the selection narrowed to tasks in these states."""
        return replace(self, states=states)

    def of(self, rows: QuerySet[Task]) -> QuerySet[Task]:
        """Return the tasks of the selection. This sends a few queries first."""
        given = (getattr(self, field.name) for field in fields(self))
        if any("\x00" in value for value in given if isinstance(value, str)):
            return rows.filter(_NOTHING)
        for condition in self._match(rows):
            rows = rows.filter(condition)
        return rows

    def keys(self) -> tuple[int, int]:
        """Return two keys: all tasks of the selection come after the first and up to the second."""
        return find_span(Task.objects.all(), self.made_after, self.made_before)

    def _match(self, rows: QuerySet[Task]) -> Iterator[Q]:
        for column, value in self._columns().items():
            if value is not None:
                yield Q(**{column: value})
        if self.states:
            yield Q(state__in=sorted(self.states))
        # An empty owner stands for anonymous callers, but an empty `created_by` has no meaning.
        if self.owner is not None:
            yield Q(owner=self.owner) | Q(created_by=self.owner) if self.owner else Q(owner="")
        yield from self._match_keys(rows)
        if self.took_more is not None:
            yield _match_begun_before(self.took_more)
        if self.took_less is not None:
            yield ~_match_begun_before(self.took_less)

    def _match_keys(self, rows: QuerySet[Task]) -> Iterator[Q]:
        """Yield the conditions that are turned into keys first."""
        if self.context is not None:
            yield Q(context_id__in=_contexts(self.context))
        if self.id_prefix:
            yield _match_prefix(self.id_prefix).condition
        if self.text is not None:
            yield _match_words(self.text).condition
        if self.search is not None:
            yield _match_text(rows, self.search)
        if self.mark is not None:
            mark = MARKS.get(self.mark)
            yield Q(pk__in=list(mark.tasks(MAX_COUNT))) if mark else _NOTHING
        if self.stuck is not None:
            yield Q(pk__in=list(find_stuck(self.stuck)))

    def _columns(self) -> dict[str, str | datetime | None]:
        return {
            "agent": self.agent,
            "tenant": self.tenant,
            "origin_dialect": self.dialect,
            "origin_binding": self.binding,
            "public_id": self.id,
            "created_at__gte": self.made_after,
            "created_at__lt": self.made_before,
            "status_at__gte": self.changed_after,
            "status_at__lt": self.changed_before,
        }


def _match_begun_before(span: timedelta) -> Q:
    """Match tasks that were created this time before their end, or before now."""
    ended = Q(state__in=sorted(TERMINAL))
    return ended & Q(created_at__lte=F("status_at") - span) | ~ended & Q(
        created_at__lte=Now() - span
    )


class _Hits(NamedTuple):
    """Keys of a few matching tasks; None = there are more than HITS, and `otherwise` is the condition."""

    keys: Collection[int] | None
    otherwise: Q = _NOTHING

    @property
    def condition(self) -> Q:
        return self.otherwise if self.keys is None else Q(pk__in=self.keys)


def _contexts(public_id: str) -> list[int]:
    """Return the keys of contexts with this id, by a separate query: an OR across a join has no index."""
    found = Context.objects.filter(public_id=public_id).order_by("-pk")
    return list(found.values_list("pk", flat=True)[:CONTEXTS])


def _match_prefix(prefix: str) -> _Hits:
    """Search the unique index of ids, which is sorted by code points in both databases."""
    span = Q(public_id__gte=prefix, public_id__lt=prefix + _HIGHEST)
    found = Task.objects.filter(span).order_by("public_id").values_list("pk", flat=True)
    keys = list(found[: HITS + 1])
    return _Hits(keys) if len(keys) <= HITS else _Hits(None, span)


def _match_words(text: str) -> _Hits:
    wanted = text_search.words_of(text)
    if not wanted:
        return _Hits([])
    keys = text_search.hits(wanted, HITS)
    return _Hits(keys) if keys is not None else _Hits(None, text_search.match_words(wanted))


def _match_text(rows: QuerySet[Task], text: str) -> Q:
    """Match an exact id; if there is none, the beginning of an id, or words."""
    wanted = text.strip()
    if wanted.startswith(NUMBER):
        return Q(pk__in=parse_task_reference(wanted))
    exact = Q(public_id=wanted)
    contexts = _contexts(wanted)
    if contexts:
        exact |= Q(context_id__in=contexts)
    if rows.filter(exact).order_by().exists():
        return exact
    found = _match_words(wanted).condition
    if len(wanted) >= MIN_PREFIX_LENGTH and not any(map(str.isspace, wanted)):
        found |= _match_prefix(wanted).condition
    return found


# --- pages --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SearchPage:
    """Tasks, newest first, and the keys of the next pages; None = there is none."""

    items: list[Task]
    #: The page of older tasks ends before this key.
    older: int | None
    #: The page of newer tasks begins after this key.
    newer: int | None
    #: True if the page is not full and keys before `older` were not searched yet.
    unfinished: bool = False


def page(
    rows: QuerySet[Task],
    selection: Selection,
    *,
    size: int,
    before: int | None = None,
    after: int | None = None,
) -> SearchPage:
    """Return a page of the selected rows: before a key, else after a key, else the newest ones."""
    low, high = selection.keys()
    chosen = selection.of(rows)
    if before is None and after is not None:
        return _newer(chosen, max(low, after), high, size)
    top = high if before is None else min(high, before - 1)
    return _older(chosen, low, top, size, paged=before is not None)


def _older(rows: QuerySet[Task], low: int, top: int, size: int, *, paged: bool) -> SearchPage:
    items: list[Task] = []
    floor = top
    with ExitStack() as wide:
        for number, (floor, high) in enumerate(_windows(low, top)):
            if number == 1:
                wide.enter_context(sparse_index.use_index())
            left = size + 1 - len(items)
            items += rows.filter(pk__gt=floor, pk__lte=high).order_by("-pk")[:left]
            if len(items) > size:
                break
    full = len(items) > size
    older = items[size - 1].pk if full else find_next(Task.objects.all(), low, floor)
    newer = (items[0].pk if items else top) if paged else None
    unfinished = len(items) < size and older is not None
    return SearchPage(items=items[:size], older=older, newer=newer, unfinished=unfinished)


def _newer(rows: QuerySet[Task], low: int, high: int, size: int) -> SearchPage:
    """Return the page of the nearest newer tasks; if they do not fill a page, the newest page."""
    items: list[Task] = []
    ceiling = low
    with ExitStack() as wide:
        for number, (down, up) in enumerate(_windows(-high - 1, -low - 1)):
            if number == 1:
                wide.enter_context(sparse_index.use_index())
            left = size + 1 - len(items)
            items += rows.filter(pk__gte=-up, pk__lt=-down).order_by("pk")[:left]
            ceiling = -down - 1
            if len(items) > size:
                break
    full = len(items) > size
    if not full and ceiling >= high:
        return _older(rows, 0, high, size, paged=False)
    shown = items[:size][::-1]
    newer = shown[0].pk if shown else ceiling
    return SearchPage(items=shown, older=shown[-1].pk if shown else low + 1, newer=newer)


def _windows(low: int, top: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of keys downwards from `top`, each after its first and up to its second key, until PATIENCE is over.

    The width of a window follows from the speed of the window before, so that the last window also ends in time.
    """
    width, until = FIRST, monotonic() + PATIENCE
    while top > low:
        floor, begun = max(low, top - width), monotonic()
        yield floor, top
        now = monotonic()
        if now >= until:
            return
        affordable = (top - floor) * (until - now) / max(now - begun, 1e-6)
        top, width = floor, max(1, min(GROWTH * width, int(affordable)))


def walk(rows: QuerySet[Task], selection: Selection) -> Iterator[list[Task]]:
    """Yield all selected tasks, newest first. Each step is one short query of SLICE tasks at most, or none."""
    low, top = selection.keys()
    chosen = selection.of(rows)
    while top > low:
        floor = max(low, top - WINDOW)
        found = list(chosen.filter(pk__gt=floor, pk__lte=top).order_by("-pk")[:SLICE])
        yield found
        top = found[-1].pk - 1 if len(found) == SLICE else floor
