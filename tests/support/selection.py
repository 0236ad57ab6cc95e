"""Which of the tests that were found belong to this run: those of its backend, and, in `make test`, those whose turn it is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.thorough import THOROUGH

__all__ = ["find_backend", "find_turns_of_others", "is_for_another"]

#: A module of tests for one backend alone.
FOR_ONE = re.compile(
    r'^pytestmark = (?:\[[^\]]*?)?pytest\.mark\.(backend|quick_on)\("(\w+)"\)', re.MULTILINE
)


def is_for_another(module: str, backend: str, *, thorough: bool = THOROUGH) -> bool:
    """Tell by the text of a module that it has no test for this backend."""
    found = FOR_ONE.search(module)
    if found is None or (thorough and found[1] == "quick_on"):
        return False
    # The mark of a test counts more than that of its module.
    return found[2] != backend and f'backend("{backend}")' not in module


def find_backend(item: Any, *, thorough: bool = THOROUGH) -> str | None:
    """The one backend on which a test is run; None for a test of both."""
    marker = item.get_closest_marker("backend")
    if marker is None and not thorough:
        marker = item.get_closest_marker("quick_on")
    return marker.args[0] if marker else None


def find_turns_of_others(items: Sequence[Any]) -> list[Any]:
    """List tests with a value of a fixture that their mark `in_turn` leaves to other tests.

    The values go round among the tests of a file, so that each value has a test if there are as many tests as shares.
    A value has the number in which it first comes: pytest's own indices count cases, not values.
    """
    found = []
    turns = defaultdict[tuple[Path, str], list[str]](list)
    values = defaultdict[tuple[str, str], list[Any]](list)
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        test = item.nodeid.partition("[")[0]
        for mark in item.iter_markers("in_turn"):
            for name in set(mark.args) & params.keys():
                turn = _number(turns[item.path, name], test)
                value = _number(values[test, name], params[name])
                if value % mark.kwargs["share"] != turn % mark.kwargs["share"]:
                    found.append(item)
    return found


def _number(known: list[Any], one: Any) -> int:
    if one not in known:
        known.append(one)
    return known.index(one)
