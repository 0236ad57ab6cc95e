"""Failpoints: silent without the lab; armed, the first process to pass takes the fault, alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from a2a_tasks import checks, failpoints
from a2a_tasks.failpoints import NAMES, ArmedFailpoint
from tests import ROOT, backend

pytestmark = pytest.mark.backend("sqlite")

PASS = """
import sys
from a2a_tasks.failpoints import failpoint
for name in sys.argv[1:]:
    failpoint(name)
    print("passed", name, flush=True)
"""


def pass_by(directory: Path | str, *names: str) -> subprocess.CompletedProcess[str]:
    """A process that passes these failpoints in order."""
    return subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", PASS, *names],
        env={**backend.children(), "A2A_FAILPOINTS": str(directory)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def arm(directory: Path, action: str, *, nth: int = 1) -> None:
    """Arm `accept.before`."""
    armed = ArmedFailpoint(id="1", name="accept.before", action=action, nth=nth)
    (directory / "armed").write_bytes(msgspec.json.encode(armed))


class TestFailpoint:
    def test_does_nothing_without_a_directory(self) -> None:
        assert not failpoints.ON
        failpoints.failpoint("accept.before")

    def test_does_nothing_while_none_is_armed(self, tmp_path: Path) -> None:
        assert pass_by(tmp_path, "accept.before").returncode == 0

    def test_kills_at_the_passing_asked_for_and_not_at_another_point(self, tmp_path: Path) -> None:
        arm(tmp_path, "kill", nth=2)
        victim = pass_by(tmp_path, "accept.before", "worker.rung", "accept.before")
        assert victim.returncode == -9
        assert victim.stdout == "passed accept.before\npassed worker.rung\n"
        pid, at = (tmp_path / "fired-1").read_text().split()
        assert int(pid) > 0
        assert float(at) > 0

    def test_strikes_once_however_many_pass(self, tmp_path: Path) -> None:
        arm(tmp_path, "kill")
        assert pass_by(tmp_path, "accept.before").returncode == -9
        assert pass_by(tmp_path, "accept.before").returncode == 0

    def test_raises_a_database_error_if_asked(self, tmp_path: Path) -> None:
        arm(tmp_path, "raise")
        victim = pass_by(tmp_path, "accept.before")
        assert "OperationalError: failpoint accept.before" in victim.stderr


class TestNames:
    @pytest.mark.checkout
    def test_each_is_passed_at_one_place_in_the_code_and_no_other_exists(self) -> None:
        files = (
            path
            for app in ("a2a_tasks", "a2a_push", "a2a_console")
            for path in (ROOT / app).rglob("*.py")
        )
        code = "\n".join(path.read_text() for path in files)
        for names in ("a2a_tasks/failpoints.py", "a2a_tasks/audit/actions.py"):
            code = code.replace((ROOT / names).read_text(), "")
        used = re.findall(
            r'"((?:accept|worker|park|call|rescue|stream|scheduler|webhook)\.[a-z_]+)"', code
        )
        assert sorted(used) == sorted(NAMES)


class TestCheck:
    def test_warns_an_operator_who_left_it_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(failpoints, "ON", True)
        assert "a2a_tasks.W012" in {message.id for message in checks.check_settings()}
