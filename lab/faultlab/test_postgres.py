"""The lab's private PostgreSQL cluster can be done everything to that the faults need."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from lab.faultlab.postgres import Postgres
from lab.faultlab.private import eventually

pytestmark = pytest.mark.backend("stack")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as cluster:
        cluster.create("lab")
        cluster.execute("CREATE TABLE notes (said text)", "lab")
        cluster.execute("GRANT ALL ON notes TO host", "lab")
        yield cluster


def connect(postgres: Postgres) -> psycopg.Connection:
    return psycopg.connect(postgres.url("lab"), autocommit=True)


def count(postgres: Postgres, said: str) -> int:
    rows = postgres.execute("SELECT count(*) FROM notes WHERE said = %s", "lab", said)
    return int(rows[0][0])


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_ends_the_sessions_and_keeps_what_was_committed(
    postgres: Postgres, mode: str
) -> None:
    with connect(postgres) as session:
        session.execute("INSERT INTO notes VALUES (%s)", [mode])
        postgres.restart(mode)  # type: ignore[arg-type]
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    assert count(postgres, mode) == 1


def test_a_stopped_server_refuses_until_it_is_started(postgres: Postgres) -> None:
    postgres.stop()
    assert not postgres.answers()
    with pytest.raises(psycopg.OperationalError):
        connect(postgres)
    postgres.start()
    connect(postgres).close()


def test_a_killed_server_starts_again_with_what_was_committed(postgres: Postgres) -> None:
    with closing(connect(postgres)) as session:
        session.execute("INSERT INTO notes VALUES ('before the kill')")
        postgres.kill()
        assert postgres.pid is None
        postgres.start()
    assert count(postgres, "before the kill") == 1


def test_sessions_are_terminated(postgres: Postgres) -> None:
    with closing(connect(postgres)) as session:
        assert postgres.terminate_backends("lab") == 1
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")


def test_a_limit_of_connections_holds_for_the_host(postgres: Postgres) -> None:
    with connect(postgres):
        postgres.limit_connections("lab", 1)
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            connect(postgres)
    postgres.limit_connections("lab", -1)
    connect(postgres).close()


def test_a_database_that_only_reads_refuses_writes_of_open_sessions(postgres: Postgres) -> None:
    with connect(postgres) as session:
        postgres.read_only(on=True)
        session.execute("SELECT * FROM notes")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            session.execute("INSERT INTO notes VALUES ('refused')")
        postgres.read_only(on=False)
        session.execute("INSERT INTO notes VALUES ('written again')")


def test_a_locked_table_keeps_even_readers_waiting(postgres: Postgres) -> None:
    with connect(postgres) as session:
        session.execute("SET lock_timeout = 100")
        with (
            postgres.locked("lock table notes", "lab"),
            pytest.raises(psycopg.errors.LockNotAvailable),
        ):
            session.execute("SELECT * FROM notes")
        session.execute("SELECT * FROM notes")


OWNER = """
import signal, sys
from lab.faultlab.postgres import Postgres
with Postgres() as cluster:
    print(cluster.directory, cluster.pid, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_and_its_directory_go_with_their_owner(end: signal.Signals) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout as said:
        directory = Path(said.readline().split()[0])
        assert (directory / "data").exists()
        owner.send_signal(end)
        owner.wait(30)
    eventually(lambda: not directory.exists(), 30, "the directory is still there")
