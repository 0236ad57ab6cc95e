"""The connections of a process to the database: no more than the page for operators says."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import wait

import psycopg
import pytest
from django.db import connection, connections

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import db
from tests import ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
ROWS = {
    kind: (int(most), [int(number) for number in re.findall(r"\b\d+\b(?= `A2A| for)", of)])
    for kind, most, of in re.findall(
        r"^  \| (web|gRPC|worker|pusher)[^|]*\| (\d+) \| (.+) \|$", PAGE, re.M
    )
}


def test_the_page_adds_up_what_the_settings_allow() -> None:
    store, lists, pages = int(conf.STORE_THREADS), db.LIST_THREADS, int(conf.MAX_PAGES)
    assert {
        "web": (store + lists + pages, [store, lists, pages]),
        "gRPC": (store + lists, [store, lists]),
        "worker": (store + 4, [store, 4]),
        "pusher": (store + 1, [store, 1]),
    } == ROWS
    deploy = (ROOT / "deploy" / "Procfile").read_text(encoding="utf-8")
    assert re.findall(r"-P threads -c (\d+)", deploy) == ["4", "1"]


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
def test_the_threads_of_the_store_hold_no_more_however_much_is_asked() -> None:
    db.close()
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as session:
        most = int(conf.STORE_THREADS) + db.LIST_THREADS
        release = threading.Event()

        def hold() -> None:
            with connection.cursor() as cursor:
                cursor.execute("select 1")
            release.wait(20)

        jobs = [db._begin(hold, pool) for pool in (db.STORE, db.LISTS) for _ in range(3 * most)]
        for _ in range(1000):
            if (held := count(session)) >= most:
                break
            release.wait(0.01)
        release.set()
        wait(jobs)
        assert held == most == count(session)
    db.close()


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("most", [1, 3])
def test_threads_without_a_connection_leave_the_work_to_those_that_have_one(
    monkeypatch: pytest.MonkeyPatch, role: Role, most: int
) -> None:
    db.close()
    for key, value in {"USER": role.name, "PASSWORD": role.password}.items():
        monkeypatch.setitem(connections.settings["default"], key, value)
    role.allow(most)
    try:
        assert read_user() == [role.name] * 60
        role.allow(0)
        assert read_user() == [role.name] * 60
        role.end_sessions()
        with pytest.raises(Overloaded):
            read_user()
    finally:
        db.close()


def read_user() -> list[str]:
    """What 60 transactions at once read."""

    def read() -> str:
        with connection.cursor() as cursor:
            cursor.execute("select current_user, pg_sleep(0.005)")
            return str(cursor.fetchone()[0])

    jobs = [db._begin(read) for _ in range(60)]
    wait(jobs)
    return [job.result() for job in jobs]


class Role:
    """A user of the database, which may have so many connections. All databases of a server share its users."""

    password = "few"

    def __init__(self, session: psycopg.Connection) -> None:
        self._session, self.name = session, f"{session.info.dbname}_few"
        session.execute(f"create role {self.name} login password '{self.password}'")

    def allow(self, most: int) -> None:
        self._session.execute(f"alter role {self.name} connection limit {most}".encode())

    def end_sessions(self) -> None:
        """End all of them, and wait for their ends."""
        self._session.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = %s",
            [self.name],
        )


@pytest.fixture
def role() -> Iterator[Role]:
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as session:
        made = Role(session)
        yield made
        session.execute(f"drop role {made.name}".encode())


def count(session: psycopg.Connection) -> int:
    """The sessions of this database that began after this one; of earlier ones some may be about to end."""
    found = session.execute(
        "select count(*) from pg_stat_activity where datname = current_database() and backend_start >"
        " (select backend_start from pg_stat_activity where pid = pg_backend_pid())"
    ).fetchone()
    assert found is not None
    return int(found[0])
