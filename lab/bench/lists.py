"""A1: the time of the list of tasks with a million of them: every filter, search and page.

    python -m lab.bench --scenarios A1                              # with the other scenarios
    python -m lab.bench.lists [--size 1000000] [--database URL]     # alone, with rows and statements

Fills a database of its own, then asks the admin in this process, without network, and prints milliseconds of server time: the
median of twenty, the 95th percentile, the slowest, and how many statements the page took. `--database` asks one that was filled before.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from lab.bench.fill import BATCH
from lab.bench.postgres import Server
from lab.bench.procs import say

TIMES = 20
#: Of a million: one owner in 50,000 tasks is rare, one in 20 common.
FILL = """
with n as (select i, 'TASK_STATE_' || (array['COMPLETED','COMPLETED','COMPLETED','COMPLETED','COMPLETED','COMPLETED',
    'FAILED','CANCELED','WORKING','INPUT_REQUIRED'])[1 + (i * 7919 %% 10)] as state,
    case when i %% 1000 = 17 then 'rare-agent' else (array['demo','tables','echo'])[1 + (i %% 3)] end as agent,
    case when i %% 50000 = 23 then 'key:rare' else 'key:' || (i %% 20) end as owner,
    case when i %% 20000 = 29 then 'rare-tenant' else (array['acme','globex','initech'])[1 + (i %% 3)] end as tenant,
    now() - (%(size)s - i) * interval '2 seconds' as at
  from generate_series(%(first)s::bigint, %(last)s::bigint) i),
context as (
  insert into a2a_tasks_context (id, tenant, owner, agent, public_id, created_at, updated_at)
  select i, tenant, owner, agent, 'context-' || i, at, at from n),
task as (
  insert into a2a_tasks_task (id, public_id, tenant, owner, maker, agent, context_id, is_task, state, status_at, status_message,
    metadata, memory, last_event, run_token, origin_dialect, origin_binding, created_at)
  select i, gen_random_uuid(), tenant, owner, '', agent, i, true, state, at + interval '3 seconds', '', '', '', 3, '',
    case when i %% 100000 = 31 then 'v01' else 'v10' end, case when i %% 4 = 0 then 'GRPC' else 'JSONRPC' end, at from n)
insert into a2a_tasks_message (task_id, number, role, body, opening, created_at)
select i, 1, 'ROLE_USER', '{"messageId":"m","role":"ROLE_USER","parts":[{"text":"' || said || '"}]}', said, at
from (select n.*, 'Please look into invoice ' || i || ' of customer ' || (i %% 9973) || ' and say '
  || (array['why it is late','who pays it','what it is for'])[1 + (i %% 3)]
  || case when i %% 100000 = 37 then ' at the lighthouse' else '' end as said from n) as s
"""


def fill_database(server: Server, size: int) -> str:
    """A database with so many tasks; its URL."""
    url = server.fresh("lists")
    set_up(url)
    with psycopg.connect(url, autocommit=True) as connection:
        for first in range(1, size + 1, BATCH):
            last = min(first + BATCH - 1, size)
            connection.execute(FILL, {"first": first, "last": last, "size": size})
            say(f"{last:,} of {size:,} tasks")
        for table in ("context", "task"):
            connection.execute(
                f"select setval(pg_get_serial_sequence('a2a_tasks_{table}', 'id'), {size})".encode()
            )
        connection.execute("vacuum analyze")
    return url


def set_up(url: str) -> None:
    """Use a database that was filled before."""
    os.environ.setdefault("DJANGO_SECRET_KEY", "bench-only-" + "x" * 50)
    os.environ["DATABASE_URL"] = url
    _django().core.management.call_command("migrate", verbosity=0)


def _django() -> Any:
    import django  # noqa: PLC0415 - the database is chosen first
    import django.core.management  # noqa: PLC0415

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    django.setup()
    return django


def questions(size: int) -> Iterator[tuple[str, str]]:
    """Yield the searches of an operator, in words and as the query of the list."""
    from a2a_tasks.models import Task  # noqa: PLC0415 - as above

    some = Task.objects.get(pk=size // 3)
    yield "the first page", ""
    yield "page 1,000", f"before={size - 50_000}"
    yield "page 19,000", f"before={size - 950_000}" if size > 950_000 else "before=1000"
    yield "a state", "state=failed"
    yield "not ended", "state=unfinished"
    yield "an agent", "agent=demo"
    yield "a rare agent", "agent=rare-agent"
    yield "a state of a rare agent", "agent=rare-agent&state=failed"
    yield "a common owner", "owner=key:7"
    yield "a rare owner", "owner=key:rare"
    yield "an owner without tasks", "owner=key:nobody"
    yield "a tenant", "tenant=acme"
    yield "a rare tenant", "tenant=rare-tenant"
    yield "a dialect not used lately", "dialect=v01"
    yield "a binding", "binding=GRPC"
    yield "the past day", "created=day"
    yield "older than a week", "created=older-week"
    yield "a rare owner older than a week", "created=older-week&owner=key:rare"
    yield "a context", f"context=context-{size // 3}"
    yield "webhooks in trouble", "mark=webhooks"
    yield "search: a whole id", f"q={some.public_id}"
    yield "search: the beginning of an id", f"q={some.public_id[:8]}"
    yield "search: one letter", "q=a"
    yield "search: a word of ten tasks", "q=lighthouse"
    yield "search: a word of every task", "q=invoice"
    yield "search: a word of every third", "q=late"
    yield "search: two words", "q=lighthouse+late"
    yield "search: a number in a text", f"q={size // 3}"
    yield "search: a word in no task", "q=walrus"
    yield "everything at once", "q=invoice&state=failed&agent=rare-agent&created=month&tenant=acme"


def browser() -> Any:
    """Return a client of this process's admin, signed in as a superuser."""
    from django.contrib.auth.models import User  # noqa: PLC0415 - as above

    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    return _sign_in(user)


def staff(tenant: str) -> Any:
    """Return a client signed in as staff that may view tasks and webhooks of one tenant."""
    from django.contrib.auth.models import Group, Permission, User  # noqa: PLC0415 - as above

    from a2a_console.staff import GROUP  # noqa: PLC0415

    user, _ = User.objects.get_or_create(username=f"bench-{tenant}", is_staff=True)
    user.groups.add(Group.objects.get_or_create(name=GROUP + tenant)[0])
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return _sign_in(user)


def _sign_in(user: Any) -> Any:
    from django.test import Client  # noqa: PLC0415 - as above

    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client


def ask(size: int) -> dict[str, float | None]:
    """Ask each, and print what it took; returns medians and p95 in ms."""
    from django.db import connection  # noqa: PLC0415 - as above
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    client, medians = browser(), dict[str, float | None]()
    begun = time.perf_counter()
    client.get("/admin/a2a_tasks/task/")
    medians["a process's first page of all, ms"] = first = 1000 * (time.perf_counter() - begun)
    settle()
    print(f"A process's first page of all: {first:.0f} ms.\n")
    print("| looked for | rows | median ms | p95 ms | slowest ms | statements |")
    print("|---|---:|---:|---:|---:|---:|")
    for words, query in questions(size):
        spent = []
        for _ in range(TIMES):
            begun = time.perf_counter()
            answer = client.get(f"/admin/a2a_tasks/task/?{query}")
            spent.append(1000 * (time.perf_counter() - begun))
        if answer.status_code != 200:
            raise SystemExit(f"{query}: {answer.status_code}")
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/admin/a2a_tasks/task/?{query}")
        medians[f"{words}, ms"] = p50 = statistics.median(spent)
        medians[f"{words}, p95 ms"] = worst = p95(spent)
        rows = answer.text.count('name="_selected_action"')
        times = f"{p50:.0f} | {worst:.0f} | {max(spent):.0f}"
        print(f"| {words} | {rows} | {times} | {len(queries)} |", flush=True)
    return medians


def settle() -> None:
    """Exclude the loaded objects from garbage collection, as `manage.py serve` does."""
    gc.collect()
    gc.freeze()


def p95(spent: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(spent)[math.ceil(0.95 * len(spent)) - 1]


def main() -> int:
    """Fill and ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--database")
    args = parser.parse_args()
    server = None
    try:
        if args.database:
            set_up(args.database)
        else:
            server = Server()
            fill_database(server, args.size)
        ask(args.size)
    finally:
        if server is not None:
            server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
