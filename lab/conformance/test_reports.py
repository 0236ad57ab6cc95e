"""Reports of kits as they are read: with passes, failures and errors, and those that are broken or missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.conformance.reports import Unreadable, read
from tests.support.rows import rows

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.a.TestA" name="test_good"/>
<testcase classname="tests.a.TestA" name="test_bad[x-1]"><failure message="1 is not 2">traceback</failure></testcase>
<testcase classname="tests.a" name="test_broken"><error>no card</error></testcase>
<testcase classname="tests.a" name="test_left_out"><skipped message="no gRPC"/></testcase>
</testsuite></testsuites>"""
MARKS = "\x1b[36m=== Manifest ===\x1b[0m\n  \x1b[32m✓\x1b[0m Valid JSON.\n  \x1b[31m✗\x1b[0m [Demo] No URN.\n  • 5 entries\n"


def test_a_report_of_pytest_is_counted_and_its_errors_are_failures(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(JUNIT)
    outcome = read(path)
    assert (outcome.passed, outcome.skipped) == (1, 1)
    assert outcome.failed == {"TestA.test_bad[x-1]": "1 is not 2", "a.test_broken": "no message"}


def test_names_with_an_empty_fault_passed(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    path.write_text('{"card": "", "echo": "no kind"}')
    outcome = read(path)
    assert (outcome.passed, outcome.failed) == (1, {"echo": "no kind"})


def test_marks_are_read_from_coloured_lines(tmp_path: Path) -> None:
    path = tmp_path / "said.log"
    path.write_text(MARKS, encoding="utf-8")
    outcome = read(path)
    assert (outcome.passed, outcome.failed) == (1, {"[Demo] No URN.": "[Demo] No URN."})


@rows(
    "name, text, why",
    [
        ("report.xml", None, "no report"),
        ("report.xml", "<testsuites><testsu", "cannot be read"),
        ("report.xml", "<testsuites/>", "no tests"),
        ("told.json", "{", "cannot be read"),
        ("told.json", "[1]", "cannot be read"),
        ("told.json", "{}", "no tests"),
        ("said.log", "Traceback", "no tests"),
    ],
)
def test_a_report_that_tells_nothing_is_no_success(
    tmp_path: Path, name: str, text: str | None, why: str
) -> None:
    path = tmp_path / name
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    with pytest.raises(Unreadable, match=why):
        read(path)
