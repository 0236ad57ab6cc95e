"""The board without kits: small programs stand for them, and are run, bounded and judged as kits are."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab.conformance import __main__ as board
from lab.conformance import host
from lab.conformance.kits import KITS, PARTS, Part, list_requirements, read_version
from lab.conformance.reports import Outcome
from lab.conformance.running import Result, run_command
from tests import ROOT

#: Seconds within which what was killed has to be gone. Reached only when something is broken.
PATIENCE = 30
GOOD = "import json, pathlib; pathlib.Path('told.json').write_text(json.dumps({'card': '', 'echo': ''}))"


def _part(name: str = "part", kit: str = "a2a-itk", seconds: float = 60) -> Part:
    return Part(kit, name, "", (), "told.json", seconds=seconds)


def _run(folder: Path, program: str, seconds: float = 60) -> Outcome:
    command = [sys.executable, "-I", "-S", "-c", program]
    return run_command(command, folder, _part(seconds=seconds), dict(os.environ))


def _result(
    failed: dict[str, str], kit: str = "a2a-tck-0.3", part: str = "quality, rest"
) -> Result:
    return Result(_part(part, kit), "abc1234", outcome=Outcome(3, failed, 1))


def _board(to: Path, *results: Result) -> int:
    """What the board ends with if its parts end so."""
    ended = iter(results)
    run: Callable[[Part, Path], Result] = lambda part, checkout: next(ended)  # noqa: E731
    return board.main([str(to)], [result.part for result in results], to, run)


class TestACommand:
    def test_that_ends_well_has_what_its_report_says(self, tmp_path: Path) -> None:
        assert _run(tmp_path, GOOD) == Outcome(passed=2)

    def test_that_crashes_has_not_passed_and_tells_its_last_line(self, tmp_path: Path) -> None:
        outcome = _run(tmp_path, "raise SystemExit('no such card')")
        assert outcome.failed == {"the report": "there is no report - no such card"}

    def test_that_crashes_after_its_report_has_not_passed(self, tmp_path: Path) -> None:
        outcome = _run(tmp_path, f"{GOOD}; raise SystemExit(3)")
        assert (outcome.passed, outcome.failed) == (2, {"the kit": "it ended with status 3"})

    def test_does_not_pass_by_a_report_of_an_earlier_run(self, tmp_path: Path) -> None:
        _run(tmp_path, GOOD)
        assert _run(tmp_path, "pass").failed == {"the report": "there is no report"}

    def test_that_hangs_is_killed_with_what_it_began_and_has_not_passed(
        self, tmp_path: Path
    ) -> None:
        """The pipe is at its end when nobody is left who could write to it, also if nobody came so far."""
        os.mkfifo(tmp_path / "pipe")
        read_end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        os.close(os.open(tmp_path / "pipe", os.O_WRONLY))
        hang = "import os, signal; pipe = open('pipe', 'w'); os.fork(); signal.pause()"
        outcome = _run(tmp_path, hang, seconds=2)
        assert outcome.failed["the kit"] == "it did not end within 2 s"
        assert select.select([read_end], [], [], PATIENCE)[0]
        assert os.read(read_end, 1) == b""
        os.close(read_end)


class TestTheBoard:
    def test_tells_each_kit_that_is_not_there_and_fails_for_none(self, tmp_path: Path) -> None:
        assert board.main([str(tmp_path)], to=tmp_path / "reports") == 0
        text = (tmp_path / "reports" / "conformance.md").read_text()
        assert {kit for kit in KITS if f"| {kit} | - |" in text} == set(KITS)
        assert text.count("not given") == len(PARTS)

    def test_tells_a_part_that_is_not_run_and_why(self, tmp_path: Path) -> None:
        (tmp_path / "a2a-itk").mkdir()
        part = Part("a2a-itk", "cobol", "", (), "", not_run="needs cobol")
        assert board.main([str(tmp_path)], [part], tmp_path) == 0
        assert "| needs cobol |" in (tmp_path / "conformance.md").read_text()

    def test_fails_for_a_failure_that_is_not_known_and_names_it(self, tmp_path: Path) -> None:
        assert _board(tmp_path, _result({"test_cancel": "no\nanswer"})) == 1
        text = (tmp_path / "conformance.md").read_text()
        assert "- a2a-tck-0.3, quality, rest: `test_cancel`: no answer" in text
        assert "3 passed, 1 failed, 0 failed by" in (tmp_path / "conformance.svg").read_text()

    def test_passes_with_a_failure_that_is_the_kits_own_and_tells_why(self, tmp_path: Path) -> None:
        assert _board(tmp_path, _result({"a.test_task_state_transitions": "Unexpected"})) == 0
        text = (tmp_path / "conformance.md").read_text()
        assert "| a2a-tck-0.3 | abc1234 | quality, rest | 3 | 1 | 1 | 1 |" in text
        assert "0.3 §7.1: the current or final state" in text

    def test_knows_a_failure_in_its_own_kit_and_part_alone(self, tmp_path: Path) -> None:
        failed = {"a.test_task_state_transitions": "Unexpected"}
        assert _board(tmp_path, _result(failed, part="mandatory, rest")) == 1
        assert _board(tmp_path, _result(failed, kit="a2a-tck")) == 1

    def test_names_known_failures_that_are_mended_in_the_parts_that_ran(
        self, tmp_path: Path
    ) -> None:
        _board(tmp_path, _result({}))
        *_, gone = (tmp_path / "conformance.md").read_text().split("## ")
        assert gone.startswith("Known failures that did not occur")
        assert "test_task_state_transitions" in gone
        assert "test_message_send_continue_with_contextid" not in gone

    def test_draws_a_badge_that_says_how_many_passed(self, tmp_path: Path) -> None:
        _board(tmp_path, _result({}), _result({}))
        badge = ET.fromstring((tmp_path / "conformance.svg").read_text())  # noqa: S314 - our own
        assert badge.get("aria-label", "").startswith("A2A conformance: 6 passed, 0 failed, 0 ")


class TestAHost:
    def test_that_does_not_start_tells_what_it_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(host, "FOLDER", tmp_path)
        monkeypatch.setattr(host, "command", [sys.executable, "-c", "raise SystemExit('no key')"])
        with pytest.raises(TimeoutError, match="no key"), host.serving("demo"):
            pass


class TestAKit:
    def test_without_git_has_no_version_even_in_a_checkout_of_something_else(
        self, tmp_path: Path
    ) -> None:
        assert read_version(tmp_path) == read_version(ROOT / "docs") == "unknown"

    def test_gets_the_versions_of_its_lock_and_releases_instead_of_branches(
        self, tmp_path: Path
    ) -> None:
        wanted = ["httpx>=0.27", "a2a-sdk[grpc] @ git+https://example.com/sdk.git@v1.0.3"]
        (tmp_path / "pyproject.toml").write_text(f"[project]\ndependencies = {json.dumps(wanted)}")
        (tmp_path / "uv.lock").write_text(
            '[[package]]\nname = "httpx"\nversion = "0.28.1"\nsource = { registry = "x" }\n'
            '[[package]]\nname = "kit"\nversion = "1"\nsource = { editable = "." }\n'
        )
        lock = tmp_path / "versions"
        assert list_requirements(tmp_path, lock)[1:] == ["httpx>=0.27", "a2a-sdk[grpc]==1.0.3"]
        assert lock.read_text() == "httpx==0.28.1\n"
