"""A start that goes wrong says why in one line, and what to do: variables that are mistyped, tables that are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT


def manage(here: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the host with these variables and no others."""
    return subprocess.run(  # noqa: S603 - words of the test
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(here), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"DATABASE_URL": "127.0.0.1:5432/s3cret"}, "DATABASE_URL is not the URL of a database"),
        ({"DATABASE_URL": "postgress://u:s3cret@h/x"}, "postgres://USER:PASSWORD@HOST:5432/NAME"),
        ({"DATABASE_URL": "postgres://u:s3cret@h:port/x"}, "DATABASE_URL is not the URL"),
        ({"REDIS_URL": "127.0.0.1:6379"}, "REDIS_URL is not the URL of a server"),
        ({"CELERY_BROKER_URL": "u:s3cret@rabbit:5672"}, "it begins with amqp://"),
        ({"A2A_APPS": "examples.demo,concirge"}, "A2A_APPS names 'concirge'"),
        ({"A2A_APPS": "examples.dmo"}, "A2A_APPS names 'examples.dmo'"),
    ],
)
def test_a_mistyped_variable_is_one_line(
    variables: dict[str, str], said: str, tmp_path: Path
) -> None:
    done = manage(tmp_path, "check", **variables)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert said in line
    assert "s3cret" not in line


@pytest.mark.parametrize(
    "named", ["examples.demo, examples.tables", " examples.tables ,examples.demo,"]
)
def test_apps_may_stand_apart(named: str, tmp_path: Path) -> None:
    done = manage(tmp_path, "check", A2A_APPS=named)
    assert done.returncode == 0, done.stderr


class TestTheDefaultAgent:
    SCRIPT = "from a2a_tasks.conf import conf; print(f'default: {conf.DEFAULT_AGENT}')"

    def test_is_the_one_that_there_is(self, tmp_path: Path) -> None:
        shown = manage(
            tmp_path, "shell", "--no-imports", "-c", self.SCRIPT, A2A_APPS="examples.tables"
        )
        assert "default: tables\n" in shown.stdout
        checked = manage(tmp_path, "check", A2A_APPS="examples.tables")
        assert "A2A_DEFAULT_AGENT" not in checked.stderr

    def test_is_the_one_that_was_named_though_there_is_none(self, tmp_path: Path) -> None:
        checked = manage(
            tmp_path, "check", A2A_APPS="examples.tables", A2A_DEFAULT_AGENT="concierge"
        )
        assert "A2A_DEFAULT_AGENT is 'concierge', but no such agent is on" in checked.stderr


@pytest.mark.parametrize("command", ["serve", "serve_grpc"])
def test_nothing_is_served_without_tables(command: str, tmp_path: Path) -> None:
    done = manage(tmp_path, command, "--port", "0")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("CommandError: The database lacks ")
    assert said.endswith("Apply them: python manage.py migrate")


def test_an_unknown_server_is_refused_before_processes_start(tmp_path: Path) -> None:
    assert manage(tmp_path, "migrate").returncode == 0
    done = manage(tmp_path, "serve", "--port", "0", "--processes", "2", SERVER="hypercorn")
    assert done.returncode == 1
    assert (
        done.stderr.splitlines()[-1]
        == "CommandError: SERVER must be one of daphne, uvicorn, not 'hypercorn'."
    )
