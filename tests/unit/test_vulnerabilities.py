"""The audit of what is installed: fails for a vulnerability, and says aloud when it could not look."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests import ROOT
from tests.advisories import Snapshot, find_flaws, make_snapshot, read_snapshot
from tests.vulnerabilities import FRESH, NOT_AUDITED, compare, verdict

DAY = datetime.date(2026, 1, 2)

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


class TestTheSnapshot:
    """An advisory of a range of versions, and one of versions that nobody put into a range."""

    ADVISORIES: ClassVar[dict[str, list[dict[str, Any]]]] = {
        "jinja2": [
            {"id": "A", "ranges": [[["introduced", "3.0"], ["fixed", "3.1.4"]]], "versions": []},
            {"id": "B", "ranges": [], "versions": ["2.9-odd"]},
            {
                "id": "C",
                "ranges": [[["introduced", "0"], ["last_affected", "2.4"]]],
                "versions": [],
            },
            {
                "id": "D",
                "ranges": [
                    [
                        ["introduced", "5.0"],
                        ["fixed", "5.0.8"],
                        ["introduced", "4.2"],
                        ["fixed", "4.2.15"],
                    ]
                ],
                "versions": [],
            },
        ]
    }

    @pytest.mark.parametrize(
        ("version", "flaws"),
        [
            *(("3.0", "A"), ("3.1.3.post1", "A"), ("3.1.4", ""), ("2.9-odd", "B"), ("2.4", "C")),
            *(("2.5", ""), ("4.1", ""), ("4.2.14", "D"), ("4.2.15", ""), ("5.0.7", "D")),
            ("5.0.8", ""),
        ],
    )
    def test_knows_the_versions_that_an_advisory_concerns(self, version: str, flaws: str) -> None:
        found = find_flaws({"jinja2": version}, Snapshot(DAY, self.ADVISORIES))
        assert "".join(flaw for _, flaw in found) == flaws

    def test_fails_the_audit_for_a_package_that_it_names(self) -> None:
        packages = {"jinja2": "3.1.0", "django": "6.0"}
        lines, code = compare(packages, Snapshot(DAY, self.ADVISORIES), DAY)
        assert code == 1
        assert lines[0] == "jinja2 3.1.0: A, by the snapshot"
        assert compare({"jinja2": "3.1.4"}, Snapshot(DAY, self.ADVISORIES), DAY)[1] == 0

    def test_says_aloud_that_it_is_old(self) -> None:
        fresh = compare({}, Snapshot(DAY, {}), DAY + FRESH)
        assert fresh == ([f"0 packages compared with the snapshot of {DAY}"], 0)
        (old, _), code = compare({}, Snapshot(DAY, {}), DAY + FRESH + datetime.timedelta(days=1))
        assert old.startswith(f"{NOT_AUDITED} advisories after {DAY}: the snapshot is 31 days old")
        assert code == 0

    def test_that_is_shipped_knows_real_vulnerabilities_of_our_packages(self) -> None:
        former = {"django": "5.0.6", "requests": "2.19.0", "aiohttp": "3.9.1"}
        found = {name for name, _ in find_flaws(former, read_snapshot())}
        assert found == former.keys()

    def test_is_made_from_a_clone_of_the_database(self, tmp_path: Path) -> None:
        (tmp_path / "vulns" / "jinja2").mkdir(parents=True)
        for name, more in (("1", ""), ("2", "withdrawn: 2024-01-01T00:00:00Z\n")):
            (tmp_path / "vulns" / "jinja2" / f"PYSEC-{name}.yaml").write_text(
                f"id: PYSEC-{name}\n{more}affected:\n- package: {{name: Jinja2, ecosystem: PyPI}}\n"
                '  ranges: [{type: ECOSYSTEM, events: [{introduced: "0"}, {fixed: "2.5"}]}]\n'
                '  versions: ["2.4", "2.9"]\n'
            )
        git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.com"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], check=True)  # noqa: S603 - words of ours
        made = make_snapshot(tmp_path, ["jinja2", "django"])
        ranges = [[("introduced", "0"), ("fixed", "2.5")]]
        assert made.advisories == {
            "jinja2": [{"id": "PYSEC-1", "ranges": ranges, "versions": ["2.9"]}]
        }


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
    assert f"{NOT_AUDITED} the vulnerability service of PyPI cannot be reached" in done.stdout
