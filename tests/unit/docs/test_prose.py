"""Prose begins with its subject, and old phrases do not come back (tests/prose.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import prose


@pytest.mark.thorough  # `make check` does, too
def test_the_prose_has_no_flaws() -> None:
    assert prose.read_all() == []


@pytest.mark.parametrize(
    "text",
    [
        "Whoever asked has gone.",
        "Return it. whether it is there is another question.",
        "Two counts: how many there are.",
        "The first.\n\nWhat the settings say.",
        "Is it the last?",
        "- Nobody has it.",
    ],
)
def test_a_flaw_is_found(text: str) -> None:
    assert prose.find_flaws(text)


@pytest.mark.parametrize("text", ["True if it is the last.", "Is the last.", "The one who asked."])
def test_a_statement_is_none(text: str) -> None:
    assert prose.find_flaws(text) == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.py", '"""A module."""\n\nx = 1  # somebody set it\n', 3),
        ("a.py", 'f(\n    help="Whose it is"\n)\n', 2),
        ("a.py", 'raise ValueError("Nobody has it")\n', 1),
        ("a.py", 'log("the bell is silent")\n', 1),
        ("a.html", "<p>\n<b>Whose is it</b>\n</p>\n", 2),
        ("a.md", "# Why?\n\nWho has it sees it.\n", 3),
        ("a.js", "// work\n// for people\n", 1),
    ],
)
def test_it_is_found_in_a_file(tmp_path: Path, name: str, text: str, line: int) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert {number for number, _ in prose.find(path)} == {line}
