"""No pattern of the apps needs more than linear time for a text, whoever wrote it.

Each pattern in their code is found, and gets up to 1 MB of its own beginnings. A new pattern needs no entry here.
"""

from __future__ import annotations

import re

import pytest

from tests.support.patterns import (
    Found,
    find_all,
    find_growth,
    list_makings,
    repeats_a_lookaround_possessively,
)

pytestmark = pytest.mark.checkout

#: Patterns that see only the words of who runs the host, and which.
OWN_TEXT = {"a2a_tasks.signatures.keys._PEM": "the private keys of the host"}


@pytest.fixture(scope="module")
def patterns() -> list[Found]:
    """The patterns of the apps: to find them takes seconds, which no other process of a run needs to spend."""
    return find_all(
        *("a2a_tasks", "a2a_push", "a2a_console", "a2a_project"),
        *("a2a_doors", "a2a_grpc", "a2a_frameworks"),
    )


def test_each_pattern_takes_linear_time(patterns: list[Found]) -> None:
    others = [found for found in patterns if found.name not in OWN_TEXT]
    assert [found.name for found in others if not list_makings(found.pattern)] == []
    grown = {found.name: growth for found in others if (growth := find_growth(found))}
    assert grown == {}


def test_no_pattern_repeats_a_lookaround_possessively(patterns: list[Found]) -> None:
    """Python 3.11.2, which Debian 12 has, finds nothing with such a one; an atomic group does the same."""
    found = [one.name for one in patterns if repeats_a_lookaround_possessively(one.pattern)]
    assert found == []


@pytest.mark.parametrize("written", [r"((?:(?! died).)*+) ", r"a(?:b(?=c)|d)++"])
def test_a_lookaround_that_is_repeated_possessively_is_noticed(written: str) -> None:
    assert repeats_a_lookaround_possessively(re.compile(written))


def test_exceptions_are_patterns(patterns: list[Found]) -> None:
    assert {*OWN_TEXT} <= {found.name for found in patterns}
    assert len(patterns) > 60


@pytest.mark.parametrize(
    "written",
    [
        r"\beyJ[\w-]+\.",
        r"[a-z]+=",
        r"\s+$",
        r"(?:a|b)*c",
        r"<!--.*?-->",
        r"BEGIN (\w+)\n.+?END \1",
    ],
)
def test_a_search_that_is_not_linear_is_noticed(written: str) -> None:
    assert find_growth(Found("", re.compile(written, re.DOTALL), searches=True))


@pytest.mark.parametrize("written", [r"[^/?#]*[^?#]*(?:#.*)?", r"(.*) (?:died: (.*)\.|ended\.)"])
def test_a_match_that_is_not_linear_is_noticed(written: str) -> None:
    assert find_growth(Found("", re.compile(written), searches=False))


def test_a_pattern_of_a_function_is_no_exception(patterns: list[Found]) -> None:
    names = {found.name for found in patterns}
    assert "a2a_tasks.protocol.idempotency.name_of_key" in names
    assert "a2a_tasks.telemetry.redaction.SHAPES" in names
