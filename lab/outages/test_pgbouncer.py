"""Behind PgBouncer in transaction mode nothing is written twice, and no limit of ours stays with a session that is shared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from lab.outages.host import ENDED, Host
from lab.outages.pgbouncer import PgBouncer
from tests.support.execution.waiting import eventually
from tests.support.proxy import Behaviour

pytestmark = [
    pytest.mark.backend("stack"),
    pytest.mark.pgbouncer,
    pytest.mark.timeout(300),
]

#: Sessions of the pool.
SESSIONS = 8


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[tuple[Host, PgBouncer]]:
    """A host whose way to the database is worker, PgBouncer, proxy, PostgreSQL."""
    made = Host(tmp_path, environ={"A2A_PREPARE": "0"})
    pool = PgBouncer(made.way.port, size=SESSIONS)
    try:
        with made.way, pool:
            made.environ["DATABASE_URL"] = made.postgres.url("outage", port=pool.port)
            made.start()
            yield made, pool
    finally:
        made.close()


def written(host: Host) -> int:
    """How many events there are."""
    return int(host.rows("select count(*) from a2a_tasks_event")[0][0])


@pytest.mark.parametrize("answer", [b"COMMIT\0", b"SELECT 1\0"], ids=["commit", "statement"])
def test_an_answer_that_is_lost_between_pool_and_server_writes_nothing_twice(
    pooled: tuple[Host, PgBouncer], answer: bytes
) -> None:
    """Of the transaction, or of a statement in it: then nothing was written, and the pool says the same of both."""
    host, _ = pooled
    host.send("speaker", "40 6 0.1", "task")
    for n in (8, 20):
        eventually(lambda n=n: written(host) >= n, 60)  # type: ignore[misc]
        before, calls = written(host), host.way.accepted
        host.way.behave(Behaviour(cut_at=answer))  # the pool tells its client
        if answer.startswith(b"COMMIT"):
            eventually(lambda before=before: written(host) > before, 20)  # type: ignore[misc]
        eventually(lambda calls=calls: host.way.accepted > calls + 10, 20)  # type: ignore[misc]
        host.way.behave(Behaviour())
    eventually(lambda: host.states() <= ENDED, 120)
    assert host.states() == {"TASK_STATE_COMPLETED"}
    bodies = [body for (body,) in host.rows("select body from a2a_tasks_event order by number")]
    pieces = [int(n) for body in bodies for n in re.findall(r'"text":"(\d+);', body)]
    assert pieces == list(range(40))
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(1,)]


def test_sessions_of_the_pool_have_no_limits_of_ours(pooled: tuple[Host, PgBouncer]) -> None:
    host, pool = pooled
    host.begin("3", tasks=50)
    eventually(lambda: host.states() == {"TASK_STATE_COMPLETED"}, 60)
    with ExitStack() as all_at_once:  # each in a transaction, so that each has a session of its own
        for _ in range(SESSIONS):
            url = host.postgres.url("outage", port=pool.port)
            agent = all_at_once.enter_context(psycopg.connect(url, prepare_threshold=None))
            for name in (
                "statement_timeout",
                "lock_timeout",
                "idle_in_transaction_session_timeout",
            ):
                (limit,) = agent.execute(f"show {name}").fetchone() or ("?",)
                assert limit == "0", name


def test_a_transaction_that_freezes_is_ended_all_the_same(pooled: tuple[Host, PgBouncer]) -> None:
    host, _ = pooled
    freeze = """
import django, threading
django.setup()
from django.db import transaction
from a2a_tasks.store.db import run_here
from a2a_tasks.store.event_log import lock_task
def freeze():
    with transaction.atomic():
        lock_task(public_id="task-0")
        threading.Event().wait(8)
        lock_task(public_id="task-0")
try:
    run_here(freeze)
except Exception as fault:
    print(type(fault).__name__, fault.undone)
"""
    host.begin("20", tasks=1)
    assert host.run("-c", freeze).startswith("Overloaded")
