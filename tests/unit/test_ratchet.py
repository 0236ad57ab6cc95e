"""The ratchet: lines may fall, and rise only with the name of a feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ratchet import MAX_LINES, check


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A house of 100 lines, with a migration and a guest that do not count."""
    for name, lines in (("a.py", 60), ("b/c.py", 40), ("migrations/m.py", 500), ("guest/g.py", 7)):
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n" * lines)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("one two\nthree\n")
    return tmp_path


def house(lines: int, *rises: dict[str, Any]) -> dict[str, Any]:
    return {
        "house": {
            "paths": ["house"],
            "without": ["house/guest"],
            "lines": lines,
            "rises": list(rises),
        }
    }


def test_as_many_lines_as_the_number_are_allowed(tree: Path) -> None:
    assert check(tree, house(100)) == []


def test_one_line_more_is_refused(tree: Path) -> None:
    (flaw,) = check(tree, house(99))
    assert "100 lines, and 99 are allowed" in flaw


def test_a_rise_that_names_its_feature_is_allowed(tree: Path) -> None:
    assert check(tree, house(95, {"lines": 5, "feature": "a door"})) == []


def test_a_number_far_above_the_lines_is_to_be_lowered(tree: Path) -> None:
    (flaw,) = check(tree, house(110))
    assert "write this instead of 110" in flaw


def test_words_of_pages_are_counted(tree: Path) -> None:
    assert check(tree, {"docs": {"paths": ["docs"], "words": 3, "rises": []}}) == []
    assert check(tree, {"docs": {"paths": ["docs"], "words": 2, "rises": []}}) != []


def test_long_functions_are_refused_and_their_docstrings_are_not_counted(tree: Path) -> None:
    body = "    x = 1\n" * MAX_LINES
    text = '    """One.\n\n    More.\n    """\n'
    (tree / "house" / "a.py").write_text(f"def a():\n{text}{body}")
    assert check(tree, house(65)) == []
    (tree / "house" / "a.py").write_text(f"def a():\n{text}{body}    x = 1\n")
    (flaw,) = check(tree, house(66))
    assert "more than 21 lines" in flaw
