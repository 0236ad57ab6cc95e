"""A start that goes wrong says why in one line, and what to do: variables that are mistyped, tables that are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from a2a_project.variables import apps, database, server
from tests import ROOT
from tests.support.rows import rows
from tests.support.thorough import thorough

CELERY = ("-m", "celery", "-A", "a2a_project")


def manage(here: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the host with these variables and no others."""
    return python(here, "manage.py", *words, **variables)


def python(here: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The same for what Python is to run."""
    return subprocess.run(  # noqa: S603 - words of the test
        [sys.executable, *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(here), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@rows(
    "mistyped, said",
    [
        (partial(database, "127.0.0.1:5432/s3cret"), "DATABASE_URL is not the URL of a database"),
        (partial(database, "postgres://u:s3cret@h:port/x"), "DATABASE_URL is not the URL"),
        (partial(server, "REDIS_URL", "127.0.0.1:6379", ["redis"]), "it must begin with redis://"),
        (partial(server, "BROKER", "u:s3cret@rabbit:5672", ["amqp", "sqs"]), "amqp://, sqs://"),
        (partial(apps, ["examples.demo", "concirge"]), "A2A_APPS names 'concirge'"),
        (partial(apps, ["examples.dmo"]), "A2A_APPS names 'examples.dmo'"),
    ],
)
def test_what_is_mistyped_is_told_without_its_value(
    mistyped: Callable[[], object], said: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        mistyped()
    assert said in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        thorough(
            {"DATABASE_URL": "127.0.0.1:5432/s3cret"}, "DATABASE_URL is not the URL of a database"
        ),
        ({"DATABASE_URL": "postgress://u:s3cret@h/x"}, "postgres://USER:PASSWORD@HOST:5432/NAME"),
        thorough({"DATABASE_URL": "postgres://u:s3cret@h:port/x"}, "DATABASE_URL is not the URL"),
        thorough({"REDIS_URL": "127.0.0.1:6379"}, "REDIS_URL is not the URL of a server"),
        thorough({"CELERY_BROKER_URL": "u:s3cret@rabbit:5672"}, "it must begin with amqp://"),
        thorough({"A2A_APPS": "examples.demo,concirge"}, "A2A_APPS names 'concirge'"),
        thorough({"A2A_APPS": "examples.dmo"}, "A2A_APPS names 'examples.dmo'"),
        thorough({"A2A_LOG_FORMAT": "xml"}, "A2A_LOG_FORMAT must be text or json, not 'xml'"),
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


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """The variables of a host with an app whose `agents.py` has a syntax error in its second line."""
    app = tmp_path / "concierge"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "agents.py").write_text("x = 1\ndef run(:\n")
    return {"A2A_APPS": "concierge", "PYTHONPATH": str(tmp_path)}


def test_a_syntax_error_in_an_app_is_one_line_with_its_place(
    tmp_path: Path, broken: dict[str, str]
) -> None:
    done = manage(tmp_path, "check", **broken)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    place = tmp_path / "concierge" / "agents.py"
    assert line == f"The host cannot start. {place}, line 2: invalid syntax"


@pytest.mark.thorough
def test_its_trace_is_shown_if_that_is_asked(tmp_path: Path, broken: dict[str, str]) -> None:
    assert "Traceback" in manage(tmp_path, "check", "--traceback", **broken).stderr


WORKER, BEAT = ("worker", "-P", "threads", "-Q", "nobodys"), ("beat",)


class TestWorkersAndBeat:
    @pytest.mark.parametrize("kind", [WORKER, thorough(BEAT)])
    def test_say_in_one_line_what_is_mistyped(self, kind: tuple[str, ...], tmp_path: Path) -> None:
        done = python(tmp_path, *CELERY, *kind, DATABASE_URL="127.0.0.1:5432/s3cret")
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "The environment is wrong. DATABASE_URL is not the URL of a database" in done.stderr

    @pytest.mark.thorough
    @pytest.mark.parametrize("kind", [WORKER, BEAT])
    def test_say_in_one_line_where_an_app_has_a_syntax_error(
        self, kind: tuple[str, ...], tmp_path: Path, broken: dict[str, str]
    ) -> None:
        done = python(tmp_path, *CELERY, *kind, CELERY_BROKER_URL="redis://127.0.0.1:1/0", **broken)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "concierge/agents.py, line 2: invalid syntax" in done.stderr


@pytest.mark.thorough
def test_a_command_that_breaks_a_rule_of_the_tables_keeps_its_trace(tmp_path: Path) -> None:
    """Nothing is wrong with the database."""
    script = "from django.db import IntegrityError; raise IntegrityError('there is one already')"
    done = manage(tmp_path, "shell", "--no-imports", "-c", script)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "DATABASE_URL" not in done.stderr


def test_a_file_of_sqlite_that_cannot_be_made_is_not_served(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'none' / 'there.db'}"
    about = {"DATABASE_URL": database, "A2A_APPS": "examples.demo"}
    done = manage(tmp_path, "serve", "--port", "0", **about)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "unable to open database file. Look at DATABASE_URL" in line


def test_apps_may_stand_apart() -> None:
    assert apps([" examples.tables ", "examples.demo", ""]) == ["examples.tables", "examples.demo"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "named", ["examples.demo, examples.tables", " examples.tables ,examples.demo,"]
)
def test_a_host_starts_with_apps_that_stand_apart(named: str, tmp_path: Path) -> None:
    done = manage(tmp_path, "check", A2A_APPS=named)
    assert done.returncode == 0, done.stderr


class TestTheDefaultAgent:
    SCRIPT = (
        "from a2a_tasks.conf import conf; print(f'default: {conf.DEFAULT_AGENT}'); "
        "from django.core.management import call_command; call_command('check')"
    )

    def test_is_the_one_that_there_is(self, tmp_path: Path) -> None:
        shown = manage(
            tmp_path, "shell", "--no-imports", "-c", self.SCRIPT, A2A_APPS="examples.tables"
        )
        assert "default: tables\n" in shown.stdout
        assert (shown.returncode, "A2A_DEFAULT_AGENT" in shown.stderr) == (0, False)

    @pytest.mark.thorough
    def test_is_the_one_that_was_named_though_there_is_none(self, tmp_path: Path) -> None:
        checked = manage(
            tmp_path, "check", A2A_APPS="examples.tables", A2A_DEFAULT_AGENT="concierge"
        )
        assert "A2A_DEFAULT_AGENT is 'concierge', but no such agent is on" in checked.stderr


@pytest.mark.parametrize("command", ["serve", thorough("serve_grpc")])
def test_nothing_is_served_without_tables(command: str, tmp_path: Path) -> None:
    done = manage(tmp_path, command, "--port", "0")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("CommandError: The database lacks ")
    assert said.endswith("Apply the migrations: python manage.py migrate")
