"""The report is written from what was kept, whatever parts there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.framework_kills import report
from lab.framework_kills.cases import STACK

pytestmark = pytest.mark.backend("sqlite")
FIGURES = {"kills": 3, "moments": {"word": 2, "worker.ended": 1}, "requests": 9, "requests again": 3, "whole requests again": 1, "calls": 4, "commit": "abc"}  # fmt: skip


def episode(name: str, figures: dict[str, Any], violations: list[Any]) -> dict[str, Any]:
    about = {"name": name, "seed": 7, "tasks": 3, "recoveries": [2.0, 4.0]}
    return {**about, "figures": figures, "violations": violations}


def test_shows_the_parts_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "KEPT", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "reports" / "page.md")
    used = {"invariant": "F4", "text": "line 1 was asked for again"}
    kills = [episode("langgraph stack", FIGURES, []), episode("pydantic_ai stack", FIGURES, [used])]
    broken = [episode("steps-are-not-kept", {"framework": "langgraph", "caught by": "F4"}, [])]
    for name, episodes in ((report.name_part(STACK), kills), (report.BROKEN, broken)):
        told = {"command": "c", "when": "now", "seconds": 61, "episodes": episodes}
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    page = report.write().read_text()
    assert "| langgraph | 1 | 3 | 3 | 9 | 2, 1, 0 | 4 | 0, 0, 0 |" in page
    assert "| **all** | 2 | 6 | 6 | 18 | 4, 2, 1 |" in page
    assert "4 `word`, 2 `worker.ended`" in page
    assert "median 3.0 s, most 4.0 s" in page
    assert "**pydantic_ai stack, seed 7**\n  - F4: line 1 was asked for again" in page
    assert "| `steps-are-not-kept` | langgraph | F4 | 7 |" in page
    assert "## SQLite" not in page
