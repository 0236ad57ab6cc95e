"""The filters of the list of tasks: in its address, and in its search line as `agent:invoices state:failed took:>5s`.

Together they make a `Selection`. A new filter: docs/architecture.md, "Where to change what".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.views.main import SEARCH_VAR
from django.http import QueryDict
from django.utils import timezone

from a2a_console.admin.widgets import filters, principals
from a2a_console.search import selection
from a2a_console.search.selection import Selection
from a2a_console.search.stuck_tasks import KINDS
from a2a_console.search.task_flags import MARKS
from a2a_console.statistics.counts import PERIODS
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["FILTERS", "OFFERED", "UnknownFilter", "read_filters", "read_selection", "split_line"]

Conditions = dict[str, Any]
#: States by their words, and groups of states.
STATES = selection.STATES | {
    "running": frozenset({TaskState.SUBMITTED, TaskState.WORKING}),
    "waiting": INTERRUPTED,
}
_WORD = re.compile(r'\b(\w{1,20}):("[^"]*"|\S+)')
_TOOK = re.compile(r"([<>])(\d{1,6}(?:\.\d{1,3})?)(ms|s|min|h|d)?")
_UNITS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}


class UnknownFilter(Exception):
    """A filter or a value that there is none of. The text says which there are."""


def _unknown(name: str, text: str, known: Iterable[str]) -> UnknownFilter:
    return UnknownFilter(f"{name}={text[:100]} is unknown; {name}s are {', '.join(known)}")


def _choose(name: str, known: Mapping[str, Any], field: str = "") -> Callable[[str], Conditions]:
    def read(text: str) -> Conditions:
        if text not in known:
            raise _unknown(name, text, known)
        return {field or name: known[text]}

    return read


def _read_owner(text: str) -> Conditions:
    return {"owner": principals.find_principal(text)}


def _read_created(text: str) -> Conditions:
    spans = filters.CreatedFilter.SPANS
    if text not in spans:
        raise _unknown("created", text, spans)
    bound = "made_before" if text.startswith("older") else "made_after"
    return {bound: timezone.now() - spans[text][1]}


def _read_ended(text: str) -> Conditions:
    if text not in PERIODS:
        raise _unknown("ended", text, PERIODS)
    return {"states": TERMINAL, "changed_after": PERIODS[text].begin(timezone.now())}


def _read_took(text: str) -> Conditions:
    found = _TOOK.fullmatch(text)
    if not found:
        raise UnknownFilter(f"took={text[:100]} is unknown; write >5s, <200ms, >2min, >1h or >3d")
    sign, number, unit = found.groups()
    span = timedelta(seconds=float(number) * _UNITS[unit or "s"])
    return {"took_more" if sign == ">" else "took_less": span}


def _read_moment(name: str, field: str) -> Callable[[str], Conditions]:
    def read(text: str) -> Conditions:
        try:
            at = datetime.fromisoformat(text)
            return {field: at if at.tzinfo else timezone.make_aware(at)}
        except (ValueError, OverflowError):
            raise UnknownFilter(f"{name}={text[:100]} is unknown; write 2026-11-29T09:30") from None

    return read


#: By name, in the order in which they are read: states narrow those of `ended`.
FILTERS: Mapping[str, Callable[[str], Conditions]] = {
    "ended": _read_ended,
    "state": _choose("state", STATES, "states"),
    "stuck": _choose("stuck", {kind: kind for kind in ("any", *KINDS)}),
    "agent": lambda text: {"agent": text},
    "owner": _read_owner,
    "tenant": lambda text: {"tenant": text},
    "context": lambda text: {"context": text},
    "created": _read_created,
    "since": _read_moment("since", "made_after"),
    "until": _read_moment("until", "made_before"),
    "took": _read_took,
    "mark": _choose("mark", {name: name for name in MARKS}),
    "binding": _choose("binding", {one.value: one.value for one in Binding}),
    "dialect": _choose("dialect", {code: code for code in DIALECTS}),
}
#: Filters that the search line offers.
OFFERED = (
    *(f"state:{word}" for word in STATES),
    *(f"stuck:{kind}" for kind in KINDS),
    *(f"created:{span}" for span in filters.CreatedFilter.SPANS),
    *("took:>5s", "took:<1s", "mark:webhooks"),
)


def read_filters(given: Mapping[str, Any]) -> Conditions:
    """Return fields of a Selection for the parameters of an address. Raises UnknownFilter."""
    for name in given:
        if name not in FILTERS:
            raise UnknownFilter(f"{name[:100]} is no filter; filters are {', '.join(FILTERS)}")
    found: Conditions = {}
    for name, read in FILTERS.items():
        value = given.get(name) or ""
        if text := value[-1] if isinstance(value, list) else value:
            found |= read(text)
    return found


def read_selection(query: QueryDict) -> Selection:
    """Return the selection that the query of the list means. Raises UnknownFilter."""
    given = {name: values for name, values in query.lists() if name in FILTERS}
    return Selection(**read_filters(given), search=query.get(SEARCH_VAR, "").strip() or None)


def split_line(line: str) -> tuple[dict[str, str], str]:
    """Return the filters in a search line, and the rest of it. A word before a colon that is no filter is a word."""
    found = {name: text.strip('"') for name, text in _WORD.findall(line) if name in FILTERS}
    rest = _WORD.sub(lambda word: "" if word[1] in FILTERS else word[0], line)
    return found, " ".join(rest.split())
