"""Ids of the calls of tools in an answer of a model, and names of steps that are made of them. Some servers of models give all calls of an answer one id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from a2a_tasks.agents.steps import MAX_NAME_LENGTH

__all__ = ["give_unique_ids", "make_unique", "name_step"]


def make_unique(ids: Iterable[str]) -> list[str]:
    """Return the ids of the calls of one answer; one that comes again gets a number: `pay`, `pay_2`.

    Frameworks find the approval and the result of a call by its id. An empty id stays: frameworks make one of their own.
    """
    given = list(ids)
    used: set[str] = set()
    found = []
    for id_ in given:
        unique, number = id_, 1
        while unique and (unique in used or (number > 1 and unique in given)):
            number += 1
            unique = f"{id_}_{number}"
        used.add(unique)
        found.append(unique)
    return found


def give_unique_ids(calls: Sequence[Any], attribute: str) -> bool:
    """Give the calls of one answer ids of their own (`make_unique`); return whether one had none."""
    given = [getattr(call, attribute) or "" for call in calls]
    unique = make_unique(given)
    for call, id_ in zip(calls, unique, strict=True):
        setattr(call, attribute, id_)
    return unique != given


def name_step(name: str, longest: int = MAX_NAME_LENGTH) -> str:
    """Return the name of a step: the name, or its hash if it is too long."""
    if len(name) > longest or not name.isprintable():
        return hashlib.sha256(name.encode(errors="backslashreplace")).hexdigest()
    return name
