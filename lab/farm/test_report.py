"""The report is written from what was kept, whatever parts there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.farm import report

KINDS = {"17": {"what": "500, always", "notifications": 4, "ended": {"dead": 4}, "attempts": 40, "answers": {"500": 40}, "came": 40}}  # fmt: skip


def episode(name: str, **figures: object) -> dict[str, object]:
    return {"name": name, "seed": 7, "violations": [], "figures": figures}


def test_shows_the_parts_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "KEPT", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "reports" / "page.md")
    broken = {
        **episode("webhook.sent stop"),
        "violations": [{"invariant": "W7", "text": "came again"}],
    }
    parts = {
        "behaviours": [episode("1 kinds", kinds=KINDS, refused=13)],
        "kills": [episode("webhook.sent kill"), broken],
        "volume": [episode("all good", **{"healthy p99": 0.5}), episode("30 % bad", **{"healthy p99": 0.6})],
    }  # fmt: skip
    for name, episodes in parts.items():
        told = {"command": "c", "when": "now", "seconds": 61, "episodes": episodes}
        (tmp_path / f"webhook-{name}.json").write_text(json.dumps(told))
    page = report.write().read_text()
    assert "| 17 | 500, always | 4 | 4 dead | 40 | 40 | 40 500 |" in page
    assert "13 URLs" in page
    assert "| `webhook.sent` | 1/1 |  | 0/1 |" in page
    assert "**webhook.sent stop, seed 7**\n  - W7: came again" in page
    assert "| 30 % bad | 0.6 |" in page
    assert "throughput](" not in page
