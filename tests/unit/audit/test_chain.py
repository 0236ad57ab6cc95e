"""The chain as values: what is hashed, and what can be taken out of it."""

from __future__ import annotations

import datetime
import json
from dataclasses import fields, replace
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.audit.chain import (
    BEGINNING,
    ChainEntry,
    Salts,
    canonical,
    commitment,
    hash_link,
    mac,
    new_salts,
    redact,
)

AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=datetime.UTC)
SENT = ChainEntry(7, AT, "acme", "demo", "key:abc", "task.send", "task-1", "done", "", "r-1")
SALTS = Salts("a" * 32, "b" * 32)
ENTRIES = st.builds(
    ChainEntry,
    id=st.integers(1, 2**53 - 1),
    created_at=st.datetimes(timezones=st.just(datetime.UTC)),
    **{
        field.name: st.text(st.characters(exclude_categories=["Cs"]))
        for field in fields(ChainEntry)
        if field.type == "str"
    },
)


@given(ENTRIES, st.integers(1, 2**53 - 1))
def test_what_is_hashed_is_canonical_json(entry: ChainEntry, number: int) -> None:
    text = canonical(number, entry, SALTS, BEGINNING)
    assert rfc8785.dumps(json.loads(text)) == text


@pytest.mark.parametrize("name", [field.name for field in fields(ChainEntry)])
def test_every_column_counts(name: str) -> None:
    value = getattr(SENT, name)
    other: dict[type, Any] = {
        int: 8,
        str: f"{value}x",
        datetime.datetime: AT + datetime.timedelta(microseconds=1),
    }
    changed = replace(SENT, **{name: other[type(value)]})
    assert hash_link(1, changed, SALTS, BEGINNING) != hash_link(1, SENT, SALTS, BEGINNING)


def test_number_and_predecessor_count() -> None:
    links = {hash_link(1, SENT, SALTS, BEGINNING), hash_link(2, SENT, SALTS, BEGINNING)}
    assert len(links | {hash_link(1, SENT, SALTS, "1" * 64)}) == 3


def test_names_can_be_taken_out_and_the_link_stays() -> None:
    salts = new_salts()
    before = hash_link(1, SENT, salts, BEGINNING)
    gone = Salts(redact(salts.actor, SENT.actor), redact(salts.object, SENT.object))
    assert (
        hash_link(1, replace(SENT, actor="erased:1", object="erased:1"), gone, BEGINNING) == before
    )


def test_what_was_taken_out_is_not_found_by_trying_names() -> None:
    """Of two entries by the same one, nothing that stays is the same."""
    left = {commitment(redact(new_salts().actor, "key:abc"), "") for _ in range(2)}
    assert len(left) == 2


def test_the_zone_of_a_moment_does_not_count() -> None:
    there = AT.astimezone(datetime.timezone(datetime.timedelta(hours=9)))
    assert hash_link(1, replace(SENT, created_at=there), SALTS, BEGINNING) == hash_link(
        1, SENT, SALTS, BEGINNING
    )


def test_a_seal_is_of_one_key_one_number_and_one_link() -> None:
    seals = {mac(b"k", 1, "h"), mac(b"l", 1, "h"), mac(b"k", 2, "h"), mac(b"k", 1, "i")}
    assert len(seals) == 4
