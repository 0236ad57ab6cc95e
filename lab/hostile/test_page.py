"""The report tells what was found: the counts, and what was wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.hostile import page

FOUND: dict[str, dict[str, Any]] = {
    "matrix": {"cells": 2205, "wrong": []},
    "requests": {
        "requests": 10_000,
        "calls": 2500,
        "framing": 107,
        "accepted": 900,
        "refused": 9100,
        "cut": 12,
        "statuses": {"200": 7000, "400": 3000},
        "bends": {"value": 4000, "media_type": 500},
        "memory": [120, 124],
        "wrong": ["4711: status 500: b'POST'"],
    },
    "times": {
        "rounds": 200,
        "medians": {"v10 get": {"foreign": 2.0, "missing": 1.9, "difference": 0.1}},
        "wrong": [],
    },
}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The page, after every part was run on both backends."""
    monkeypatch.setattr(page, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(page, "PAGE", tmp_path / "reports" / "page.md")
    for part, found in FOUND.items():
        for backend in page.BACKENDS:
            page.keep(part, backend, {**found, "seconds": 7})
    return page.write().read_text(encoding="utf-8")


def test_every_part_has_its_counts(written: str) -> None:
    for row in (
        "| SQLite, one process | 2205 | 0 |",
        "| 10000 | 2500 | 107 | 900 | 9100 | 12 | 7000 200, 3000 400 | 120 to 124 | 1 |",
        "| v10 get | 2.00 | 1.90 | +0.10 | 2.00 | 1.90 | +0.10 |",
        "8000 value, 1000 media type",
    ):
        assert row in written


def test_what_is_wrong_is_told_with_its_number(written: str) -> None:
    assert "- sqlite: 4711: status 500" in written


def test_the_command_of_each_part_is_there(written: str) -> None:
    for part in FOUND:
        for backend in page.BACKENDS:
            command = f"python -m lab.hostile {part} --backend {backend}"
            assert command in written
