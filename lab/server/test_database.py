"""What every command and worker says of a database that cannot be used: one line, with what to do, and no trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.management.base import CommandError
from django.db import OperationalError

from a2a_tasks.management import database as looked_at
from tests import ROOT, backend

pytestmark = pytest.mark.backend("stack")
CELERY = (sys.executable, "-m", "celery", "-A", "a2a_project")
BEAT = (*CELERY, "beat")
WORKER = (*CELERY, "worker", "-P", "threads", "-Q", "nobodys")
LOOK, MIGRATE = "Look at DATABASE_URL", "Apply the migrations: python manage.py migrate"


def run(tmp_path: Path, database: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run it on that database of the server of the tests, or wherever a whole URL leads, to its end."""
    env = {**backend.children(), "VAR_DIR": str(tmp_path)}
    url = urlsplit(env["DATABASE_URL"])
    env["DATABASE_URL"] = (
        database if ":" in database else url._replace(path=f"/{database}").geturl()
    )
    env["CELERY_BROKER_URL"] = env["CELERY_BROKER_URL"] or env["REDIS_URL"]
    return subprocess.run(  # noqa: S603 - commands of ours
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False
    )


def manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, "manage.py", *words)


@pytest.mark.parametrize(
    ("database", "command", "advice"),
    [
        ("postgres://postgres@127.0.0.1:1/none", manage("migrate"), LOOK),
        ("there_is_none", manage("migrate"), LOOK),
        ("there_is_none", manage("serve", "--port", "0"), LOOK),
        ("there_is_none", WORKER, LOOK),
        ("postgres", manage("api_keys", "list"), MIGRATE),
        ("postgres", manage("a2a", "tasks"), MIGRATE),
        ("there_is_none", manage("a2a", "tasks"), LOOK),
        ("postgres", manage("serve", "--port", "0"), MIGRATE),
        ("postgres", WORKER, MIGRATE),
        ("postgres", BEAT, MIGRATE),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, tuple) else None,
)
def test_one_line_says_why_and_what_to_do(
    tmp_path: Path, database: str, command: tuple[str, ...], advice: str
) -> None:
    schedule = ("-s", str(tmp_path / "schedule")) if command is BEAT else ()
    ended = run(tmp_path, database, *command, *schedule)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert "Traceback" not in said
    (line,) = [line for line in said.splitlines() if "The database " in line]
    assert advice in line


def test_the_trace_is_there_for_who_asks_for_it(tmp_path: Path) -> None:
    ended = run(tmp_path, "there_is_none", *manage("migrate", "--traceback"))
    assert ended.returncode == 1
    assert "Traceback" in ended.stderr


AT = 'connection failed: connection to server at "127.0.0.1", port 5432 failed: '


@pytest.mark.parametrize(
    "said",
    [
        'FATAL:  database "a2a" does not exist',
        'FATAL:  role "a2a" does not exist',
        'FATAL:  password authentication failed for user "a2a"',
        "fe_sendauth: no password supplied",
        'FATAL:  permission denied for database "a2a"\nDETAIL:  User does not have CONNECT privilege.',
    ],
)
def test_what_stays_as_it_is_until_somebody_changes_it_is_refused(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match=LOOK):
        look(AT + said, monkeypatch)


@pytest.mark.parametrize(
    "said",
    [
        "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?",
        "FATAL:  the database system is starting up",
        "FATAL:  sorry, too many clients already",
    ],
)
def test_a_server_that_is_away_may_come_later(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    look(AT + said, monkeypatch)


def look(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a database whose server answers this to whoever connects."""

    def refuse() -> int:
        raise OperationalError(said)

    monkeypatch.setattr(looked_at, "count_missing_migrations", refuse)
    looked_at.refuse_unusable_database()
