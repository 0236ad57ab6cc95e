"""Two commands at once: the first is shown as it runs, the other after it, and neither's failure is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import ROOT


@pytest.mark.parametrize(("one", "other", "status"), [(0, 0, 0), (0, 3, 3), (2, 0, 2)])
def test_both_are_run_and_shown_and_a_failure_is_told(one: int, other: int, status: int) -> None:
    commands = [
        f"sh -c 'echo said {name}; exit {code}'" for name, code in (("1", one), ("2", other))
    ]
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "tests.halves", *commands],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()) == (status, ["said 1", "said 2"])


def test_each_knows_that_it_is_a_half() -> None:
    command = [sys.executable, "-m", "tests.halves", "true", "sh -c 'echo $TEST_HALVES'"]
    assert subprocess.check_output(command, cwd=ROOT, text=True) == "1\n"  # noqa: S603 - the same
