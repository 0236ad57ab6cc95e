"""The shipped rules: promtool reads them, each alert is tested, and they name only metrics that exist."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests import ROOT
from tests.support.prometheus import CONFIGURATION, RULES

TESTS = ROOT / "tests" / "unit" / "telemetry" / "alerts.yaml"
ALERTS = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))


def promtool(*arguments: str) -> None:
    """Run promtool; its words are those of the failure."""
    command = ["promtool", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.prometheus
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", str(RULES)),
        ("check", "config", str(CONFIGURATION)),
        ("test", "rules", str(TESTS)),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_promtool_is_content(arguments: tuple[str, ...]) -> None:
    promtool(*arguments)


def test_each_alert_is_tested() -> None:
    assert len(ALERTS) == len(set(ALERTS))
    assert set(re.findall(r'alertname="(\w+)"', TESTS.read_text(encoding="utf-8"))) == set(ALERTS)
