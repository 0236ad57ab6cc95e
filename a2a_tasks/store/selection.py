"""Which tasks an operator means, by whatever is known of them, and pages of those: for the console, the API and commands.

A page walks along the key from where the one before it ended, a window at a time, until it is full or has taken long
enough: page 1,000 costs what page 1 costs, nothing is counted, and a page that found little says how far it looked.
What leads to a few tasks (an id, its beginning, rare words) is turned into their keys first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import datetime
from time import monotonic
from typing import NamedTuple

from django.db.models import Q, QuerySet

from a2a_tasks.models import Context, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import marks, rare, words
from a2a_tasks.store.named import NUMBER, named
from a2a_tasks.store.spans import SLACK, last_key, split

__all__ = ["HITS", "SHORTEST_PREFIX", "Page", "Selection", "page", "walk"]

#: As many tasks as an id, a beginning of one, or words may lead to; what leads to more is looked for along the key.
HITS = 5_000
#: Contexts of one id, of different owners, that are looked at.
CONTEXTS = 1_000
#: Of this many characters a search may be the beginning of an id.
SHORTEST_PREFIX = 4
#: Keys that a page looks at first; each further look takes so many times as many, or what there is time for.
FIRST, GROWTH = 5_000, 10
#: Seconds after which a page that is not full looks no further.
PATIENCE = 0.12
#: Keys looked at by one read of who wants all.
WINDOW = 100_000
#: Rows read at once by who wants all.
SLICE = 1_000
_HIGHEST = "\U0010ffff"
_NOTHING = Q(pk__in=[])


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What has to be true of a task. None and the empty set ask nothing."""

    states: frozenset[TaskState] = frozenset()
    agent: str | None = None
    tenant: str | None = None
    #: Who made it, or whose drawer it is in.
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
    #: Each of these words begins one of those it began with.
    text: str | None = None
    #: An id, `#` and a number, the id of a context; or if there is none, the beginning of an id, or words.
    search: str | None = None
    #: The name of a mark (`store/marks.py`).
    mark: str | None = None

    @property
    def narrows(self) -> bool:
        """Is anything asked? (Every id begins with nothing.)"""
        asked = (getattr(self, field.name) for field in fields(self) if field.name != "id_prefix")
        return bool(self.id_prefix) or any(value not in (None, frozenset()) for value in asked)

    def said(self) -> dict[str, str]:
        """What is asked, for a record of it."""
        asked = {field.name: getattr(self, field.name) for field in fields(self)}
        states = ",".join(sorted(state.word for state in self.states))
        plain = {name: str(value) for name, value in asked.items() if value is not None}
        return {**plain, "states": states} if states else plain | {"states": "any"}

    def among(self, states: frozenset[TaskState]) -> Selection:
        """The same of tasks in these states."""
        return replace(self, states=states)

    def of(self, rows: QuerySet[Task]) -> QuerySet[Task]:
        """Those of these tasks. Asks the database a few things first."""
        if any("\x00" in text for text in self._texts()):
            return rows.filter(_NOTHING)
        for asked in self._asked(rows):
            rows = rows.filter(asked)
        return rows

    def keys(self) -> tuple[int, int]:
        """All of them come after the first of these keys, and up to the second."""
        low, high = 0, last_key(Task.objects.all())
        if self.made_after:
            low, _ = split(Task.objects.all(), self.made_after - SLACK)
        if self.made_before:
            high = min(high, split(Task.objects.all(), self.made_before + SLACK)[1])
        return low, high

    def _texts(self) -> list[str]:
        values = (getattr(self, field.name) for field in fields(self))
        return [value for value in values if isinstance(value, str)]

    def _asked(self, rows: QuerySet[Task]) -> Iterator[Q]:
        for column, value in self._columns().items():
            if value is not None:
                yield Q(**{column: value})
        if self.states:
            yield Q(state__in=sorted(self.states))
        if self.owner is not None:  # nobody is no maker: that is said by an empty one
            yield Q(owner=self.owner) | Q(maker=self.owner) if self.owner else Q(owner="")
        if self.context is not None:
            yield Q(context_id__in=_contexts(self.context))
        if self.id_prefix:
            yield _prefixed(self.id_prefix).condition
        if self.text is not None:
            yield _worded(self.text).condition
        if self.search is not None:
            yield _searched(rows, self.search)
        if self.mark is not None:
            mark = marks.find(self.mark)
            yield Q(pk__in=list(mark.tasks(marks.MOST))) if mark else _NOTHING

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


class _Hits(NamedTuple):
    """What leads to a few tasks, as their keys; None = they are more than a few, and the condition is another."""

    keys: Collection[int] | None
    otherwise: Q = _NOTHING

    @property
    def condition(self) -> Q:
        return self.otherwise if self.keys is None else Q(pk__in=self.keys)


def _contexts(public_id: str) -> list[int]:
    """Their keys come first, in a query of their own: an OR across a join has no index."""
    found = Context.objects.filter(public_id=public_id).order_by("-pk")
    return list(found.values_list("pk", flat=True)[:CONTEXTS])


def _prefixed(prefix: str) -> _Hits:
    """Along the unique index of ids, which is sorted by code points in both databases."""
    span = Q(public_id__gte=prefix, public_id__lt=prefix + _HIGHEST)
    found = Task.objects.filter(span).order_by("public_id").values_list("pk", flat=True)
    keys = list(found[: HITS + 1])
    return _Hits(keys) if len(keys) <= HITS else _Hits(None, span)


def _worded(text: str) -> _Hits:
    wanted = words.words_of(text)
    if not wanted:
        return _Hits([])
    keys = words.hits(wanted, HITS)
    return _Hits(keys) if keys is not None else _Hits(None, words.said(wanted))


def _searched(rows: QuerySet[Task], text: str) -> Q:
    """What is called exactly so, else what begins so."""
    wanted = text.strip()
    if wanted.startswith(NUMBER):
        return Q(pk__in=named(wanted))
    exact = Q(public_id=wanted)
    contexts = _contexts(wanted)
    if contexts:
        exact |= Q(context_id__in=contexts)
    if rows.filter(exact).order_by().exists():
        return exact
    found = _worded(wanted).condition
    if len(wanted) >= SHORTEST_PREFIX and not any(map(str.isspace, wanted)):
        found |= _prefixed(wanted).condition
    return found


# --- pages --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Page:
    """Tasks, newest first, and where the next pages begin; None = there is none."""

    items: list[Task]
    #: The next page has what is before this key.
    older: int | None
    #: The page before this one has what is after this key.
    newer: int | None
    #: The page is not full, and what is before `older` was not looked at yet.
    unfinished: bool = False


def page(
    rows: QuerySet[Task],
    selection: Selection,
    *,
    size: int,
    before: int | None = None,
    after: int | None = None,
) -> Page:
    """A page of those of `rows` that are meant: of what is before a key, or else after one, or else the newest."""
    low, high = selection.keys()
    chosen = selection.of(rows)
    if before is None and after is not None:
        return _newer(chosen, max(low, after), high, size)
    top = high if before is None else min(high, before - 1)
    return _older(chosen, low, top, size, paged=before is not None)


def _older(rows: QuerySet[Task], low: int, top: int, size: int, *, paged: bool) -> Page:
    items: list[Task] = []
    floor = top
    with ExitStack() as wide:
        for number, (floor, high) in enumerate(_windows(low, top)):
            if number == 1:
                wide.enter_context(rare.sought())
            left = size + 1 - len(items)
            items += rows.filter(pk__gt=floor, pk__lte=high).order_by("-pk")[:left]
            if len(items) > size:
                break
    full = len(items) > size
    older = items[size - 1].pk if full else _beyond(low, floor)
    newer = (items[0].pk if items else top) if paged else None
    unfinished = len(items) < size and older is not None
    return Page(items=items[:size], older=older, newer=newer, unfinished=unfinished)


def _beyond(low: int, floor: int) -> int | None:
    """Where the next page begins, after what retention may have emptied; None if there is nothing."""
    rest = Task.objects.filter(pk__gt=low, pk__lte=floor).order_by("-pk")
    key = rest.values_list("pk", flat=True).first() if floor > low else None
    return None if key is None else key + 1


def _newer(rows: QuerySet[Task], low: int, high: int, size: int) -> Page:
    """The nearest ones; if they are too few for a page, the newest page there is."""
    items: list[Task] = []
    ceiling = low
    with ExitStack() as wide:
        for number, (down, up) in enumerate(_windows(-high - 1, -low - 1)):
            if number == 1:
                wide.enter_context(rare.sought())
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
    return Page(items=shown, older=shown[-1].pk if shown else low + 1, newer=newer)


def _windows(low: int, top: int) -> Iterator[tuple[int, int]]:
    """Spans of keys downwards from `top`, each after its first and up to its second key, for as long as there is patience.

    How long the next one takes is told by how long this one took: a last one that is begun in time also ends in time.
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
    """All that are meant, newest first, so many at a time, or none: each step is one short read, whatever lies between them."""
    low, top = selection.keys()
    chosen = selection.of(rows)
    while top > low:
        floor = max(low, top - WINDOW)
        found = list(chosen.filter(pk__gt=floor, pk__lte=top).order_by("-pk")[:SLICE])
        yield found
        top = found[-1].pk - 1 if len(found) == SLICE else floor
