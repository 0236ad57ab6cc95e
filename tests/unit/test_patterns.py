"""No pattern of the apps needs more than linear time for a text, whoever wrote it.

Each pattern in their code is found, and gets up to 1 MB of its own beginnings. A new pattern needs no entry here.
"""

from __future__ import annotations

import re

import pytest

from tests.support.patterns import Found, find_all, find_growth, list_makings

pytestmark = pytest.mark.checkout

#: Patterns that see only the words of who runs the host, and which.
OWN_TEXT = {"a2a_tasks.signatures.keys._PEM": "the private keys of the host"}
PATTERNS = find_all(
    *("a2a_tasks", "a2a_push", "a2a_console", "a2a_project"),
    *("a2a_doors", "a2a_grpc", "a2a_frameworks"),
)


@pytest.mark.parametrize(
    "found",
    [found for found in PATTERNS if found.name not in OWN_TEXT],
    ids=lambda found: found.name,
)
def test_a_pattern_takes_linear_time(found: Found) -> None:
    assert list_makings(found.pattern)
    assert not find_growth(found)


def test_exceptions_are_patterns() -> None:
    assert {*OWN_TEXT} <= {found.name for found in PATTERNS}
    assert len(PATTERNS) > 60


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


def test_a_pattern_of_a_function_is_no_exception() -> None:
    names = {found.name for found in PATTERNS}
    assert "a2a_tasks.protocol.idempotency.name_of_key" in names
    assert "a2a_tasks.telemetry.redaction.SHAPES" in names
