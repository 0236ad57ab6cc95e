"""The audit of what is installed: fails for a vulnerability, and says aloud when it could not look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.vulnerabilities import NOT_AUDITED, verdict

FLAW = {"id": "PYSEC-2018-28", "fix_versions": ["2.20.0"], "aliases": [], "description": "x"}


def package(name: str, *flaws: Any) -> dict[str, Any]:
    """As pip-audit tells of one."""
    return {"name": name, "version": "2.19.0", "vulns": list(flaws)}


class TestTheVerdict:
    def test_is_well_where_nothing_is_known(self) -> None:
        assert verdict([package("requests")]) == (["1 packages audited, 0 vulnerabilities"], 0)

    def test_names_a_vulnerable_package_and_what_mends_it(self) -> None:
        lines, code = verdict([package("requests", FLAW), package("django")])
        assert code == 1
        assert lines[0] == "requests 2.19.0: PYSEC-2018-28, mended in 2.20.0"
        assert lines[-1] == "2 packages audited, 1 vulnerabilities"

    def test_says_aloud_what_could_not_be_looked_at(self) -> None:
        ours = {"name": "a2a-host", "skip_reason": "not on PyPI"}
        lines, code = verdict([ours, package("requests", FLAW)])
        assert code == 1
        assert f"{NOT_AUDITED} the service does not know a2a-host" in lines
        assert lines[-1] == "1 packages audited, 1 vulnerabilities"
        lines, code = verdict([ours])
        assert (lines[0], code) == (f"{NOT_AUDITED} the service does not know any of 1 packages", 0)


@pytest.mark.thorough
def test_a_service_that_cannot_be_reached_fails_nothing_and_is_said_aloud(tmp_path: Path) -> None:
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:1", "HOME": str(tmp_path), "NO_PROXY": ""}
    done = subprocess.run(
        [sys.executable, "-m", "tests.vulnerabilities"],
        cwd=ROOT,
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(NOT_AUDITED)
