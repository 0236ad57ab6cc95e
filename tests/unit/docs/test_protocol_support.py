"""`docs/requirements.toml` has every requirement, and names only tests that are there.

That `docs/reference/protocol-support.md` says what it says is held with the other pages, in `test_generated_docs.py`.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests import ROOT

TEXT = (ROOT / "docs" / "requirements.toml").read_text(encoding="utf-8")
DOCUMENT: dict[str, Any] = tomllib.loads(TEXT)
CHAPTERS: dict[str, tuple[str, str]] = DOCUMENT.pop("chapters")
#: How many requirements the reference has; it is not published, so the chapters' numbers stand for it.
IN_ALL = 132
LEVEL = re.compile(r"(?:MUST|SHOULD|MAY)(?: \((?:F|DR)\))?")
FOR = {"F", "F0", "F1", "FH", "DR", "s0", "v00", "v01", "v02", "v03"}
DUTIES = {"server", "client", "agent author", "deployment"}
#: Members of every requirement, and those it has at least one of.
ALWAYS, ONE_OF = {"for", "level", "duty", "text"}, {"tests", "later", "not_here"}


@functools.cache
def nodes_of(path: str) -> frozenset[str]:
    """The tests in a file, or the conversations of a transcript; none if there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    read = titled if file.suffix == ".yaml" else named
    return frozenset(f"{path}::{name}" for name in read(file.read_text(encoding="utf-8")))


def titled(text: str) -> Iterator[str]:
    """The titles of conversations."""
    for conversation in yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # noqa: S506 - either is safe
        yield conversation["conversation"]


def named(text: str) -> Iterator[str]:
    """What pytest collects from a module."""
    yield from _named(ast.parse(text).body)


def _named(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if statement.name.startswith("test_"):
                yield statement.name
        elif isinstance(statement, ast.ClassDef) and statement.name.startswith("Test"):
            yield from (f"{statement.name}::{name}" for name in _named(statement.body))


def numbered(first: str, last: str) -> list[str]:
    """The names from one to the other."""
    return [f"R-{n:03}" for n in range(int(first[2:]), int(last[2:]) + 1)]


def missing(tests: list[str]) -> list[str]:
    """Those that are not there."""
    return [test for test in tests if test not in nodes_of(test.partition("::")[0])]


def well_said(about: dict[str, Any]) -> bool:
    """Has it the members it must have, and in them nothing but what they may say?"""
    return (
        ALWAYS <= about.keys() <= ALWAYS | ONE_OF | {"note"}
        and set() < set(about["for"]) <= FOR
        and all(LEVEL.fullmatch(level) for level in about["level"].split(", "))
        and about["duty"] in DUTIES
        and about["text"].endswith(".")
        and "|" not in str(about)
    )


class TestTheRequirements:
    def test_are_all_there_and_in_order(self) -> None:
        expected = [name for first, last in CHAPTERS.values() for name in numbered(first, last)]
        assert [name for name in expected if name not in DOCUMENT] == []
        assert list(DOCUMENT) == expected
        assert len(expected) == IN_ALL

    def test_say_for_whom_they_are_and_what_they_ask(self) -> None:
        assert [name for name, about in DOCUMENT.items() if not well_said(about)] == []

    def test_are_held_or_come_later_or_are_not_the_hosts(self) -> None:
        for name, about in DOCUMENT.items():
            assert ONE_OF & about.keys(), name
            assert "not_here" not in about or not {"tests", "later"} & about.keys(), name
            assert all(about.get(member, "x") for member in (*ONE_OF, "note")), name

    def test_name_tests_that_are_there_and_each_once(self) -> None:
        named = {name: about.get("tests", []) for name, about in DOCUMENT.items()}
        assert {name: gone for name, tests in named.items() if (gone := missing(tests))} == {}
        assert [name for name, tests in named.items() if len(set(tests)) < len(tests)] == []


class TestMissing:
    """A check that cannot fail holds nothing."""

    @pytest.mark.parametrize(
        "test",
        [
            "tests/unit/docs/test_no_such_file.py::test_x",
            "tests/unit/docs/test_protocol_support.py::TestMissing::test_that_is_not_there",
            "tests/unit/docs/test_protocol_support.py::test_names_what_is_missing",
            "tests/unit/docs/test_protocol_support.py::TestMissing",
            "tests/unit/docs/test_protocol_support.py",
            "tests/unit/docs/test_protocol_support.py::numbered",
            "tests/support/dialects/golden/v10.yaml::A conversation nobody has",
        ],
    )
    def test_names_what_is_missing(self, test: str) -> None:
        assert missing([test]) == [test]

    def test_knows_what_is_there(self) -> None:
        here = "tests/unit/docs/test_protocol_support.py::TestMissing::test_knows_what_is_there"
        assert missing([here]) == []
