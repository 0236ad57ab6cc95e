"""The command `a2a-host-worker`, as far as it needs no servers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import ROOT


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, "A worker needs the host's SECRET_KEY and DATABASE_URL and REDIS_URL"),
        (
            {
                "SECRET_KEY": "s" * 50,
                "DATABASE_URL": "postgres://nobody@localhost/nothing",
                "REDIS_URL": "redis://localhost",
            },
            "A2A_ENVIRONMENT is not set. It names the environment of this worker.",
        ),
    ],
)
def test_a_worker_says_which_variable_it_lacks(variables: dict[str, str], reason: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "a2a_host.worker"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.strip().endswith(reason)
