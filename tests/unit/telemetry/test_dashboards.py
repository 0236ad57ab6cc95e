"""The shipped dashboards and rules are what their tables say, and ask for metrics that the runbook explains."""

from __future__ import annotations

import json
import re
import runpy

import pytest

from tests import ROOT
from tests.support.prometheus import RULES

pytestmark = pytest.mark.checkout
FOLDER = ROOT / "deploy" / "grafana"
PAGE = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
METRICS = PAGE.partition("\n## Metrics\n")[2].partition("\n## ")[0]
EXPLAINED = set(re.findall(r"^\| `(a2a_\w+)", METRICS, re.MULTILINE))


@pytest.mark.parametrize("name", ["service", "agents", "webhooks"])
def test_a_dashboard_is_as_its_table_says(name: str) -> None:
    made = runpy.run_path(str(FOLDER / "make_dashboards.py"))["draw_dashboard"](name)
    shipped = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert made == shipped, "run deploy/grafana/make_dashboards.py"
    panels = json.loads(shipped)["panels"]
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)


def test_they_ask_only_for_metrics_that_the_runbook_explains() -> None:
    texts = [path.read_text(encoding="utf-8") for path in [RULES, *FOLDER.glob("*.json")]]
    asked = {name for text in texts for name in re.findall(r"\ba2a_[a-z_]+", text)}
    metrics = {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked}
    assert metrics <= EXPLAINED
    assert metrics >= EXPLAINED
