"""The searches of export and erasure: they do not walk whole tables for somebody who has little."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import CharField, F, QuerySet, Value
from django.db.models.functions import Cast, Concat

from a2a_console.privacy.erasure import survey
from a2a_console.privacy.export import documents
from a2a_console.privacy.principal import KEYS, Principal, walk
from a2a_console.sparse_index import use_nothing_else
from a2a_tasks.audit import Action
from a2a_tasks.caller import TENANTS
from a2a_tasks.models import Context, Idempotency, RunStatus, Task, Usage
from a2a_tasks.store import audit
from tests.support.console.admin.rows import add_run, add_usage, make_task
from tests.support.store.copies import copy_worlds
from tests.support.store.reading import count_rows

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]


#: The queries of a principal's rows in tables that may be large.
SEARCHES: tuple[Callable[[Principal], QuerySet[Any]], ...] = (
    Principal.tasks,
    Principal.contexts,
    Principal.repeats,
    Principal.runs,
    Principal.usage,
    Principal.keys,
    Principal.entries,
)


@pytest.fixture
def crowd() -> None:
    """Tasks, reports and entries of many others, who come one after the other: each has 200 tasks, and shares one."""
    task = make_task("like")
    run = add_run(task, RunStatus.ENDED, request='{"principal":"key:7"}')
    add_usage(task)
    audit.note(Action.KEY_CREATE, "x")
    about = {"agent": "demo", "fingerprint": "f", "number": 1, "run": run.pk}
    Idempotency.objects.create(task=task, name="key/1", owner="x", **about)
    copy_worlds(20_000)
    with connection.cursor() as cursor:
        cursor.execute("set statement_timeout = 0")
        for table in (Task, Usage, Context, Idempotency):
            first = table.objects.order_by("pk").values_list("pk", flat=True)[0]
            nth = (F("pk") - first) / 200
            table.objects.update(owner=Concat(Value("key:"), Cast(nth, CharField())))
            cursor.execute(f"reindex table {table._meta.db_table}")
        oldest = Task.objects.order_by("pk").values("pk")[:20]
        Task.objects.filter(pk__in=oldest).update(owner=TENANTS)
        cursor.execute("reindex index a2a_tasks_audit_names; analyze")


@pytest.mark.usefixtures("crowd")
def test_a_search_reads_a_small_part_of_the_tables_for_whoever_has_little() -> None:
    before = count_rows()
    assert survey(Principal("key:nobody")).tasks == 0
    assert list(Principal("key:nobody").slices()) == list(walk(Principal("x").usage())) == []
    assert count_rows() - before < 10_000  # of 60,000
    before, mine = count_rows(), Principal("key:7")
    assert 199 <= sum(map(len, mine.slices())) <= 200
    assert count_rows() - before < 10_000  # of 60,000


def count_blocks(rows: QuerySet[Any]) -> int:
    """The blocks of tables and indexes that a walk reads for these rows."""
    keys = rows.order_by("pk").values("pk").filter(pk__gt=0)[:KEYS]
    with use_nothing_else():
        (plan,) = json.loads(keys.explain(format="json", analyze=True, buffers=True))
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


@pytest.mark.usefixtures("crowd")
def test_no_search_for_rows_of_one_table_reads_all_of_the_table_or_all_of_an_index() -> None:
    mine, found, blocks = Principal("key:7"), {}, {}
    for search in SEARCHES:
        found[search.__name__] = sum(map(len, walk(search(mine))))
        blocks[search.__name__] = count_blocks(search(mine))
    assert (found["contexts"], found["repeats"], found["runs"]) == (200, 200, 20)
    assert max(blocks.values()) < 100, blocks  # of more than 300


@pytest.mark.usefixtures("crowd")
def test_an_export_reads_a_small_part_of_the_tables() -> None:
    before = count_rows(entries=True)
    for _, rows in documents(Principal("key:nobody")):
        assert list(rows) == []
    assert count_rows(entries=True) - before < 20_000  # of 120,000
