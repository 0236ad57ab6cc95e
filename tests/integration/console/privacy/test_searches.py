"""The searches of export and erasure: they do not walk whole tables for somebody who has little."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import CharField, F, Value
from django.db.models.functions import Cast, Concat

from a2a_console.privacy.erasure import survey
from a2a_console.privacy.principal import Principal, walk
from a2a_tasks.audit import Action
from a2a_tasks.models import Task, Usage
from a2a_tasks.store import audit
from tests.support.console.admin.rows import add_usage, make_task
from tests.support.store.copies import copy_worlds
from tests.support.store.reading import count_rows

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]


def test_a_search_reads_a_small_part_of_the_tables_for_whoever_has_little() -> None:
    """Tasks, reports and entries of many others, who come one after the other."""
    task = make_task("like")
    add_usage(task)
    audit.note(Action.KEY_CREATE, "x")
    copy_worlds(20_000)
    with connection.cursor() as cursor:
        cursor.execute("set statement_timeout = 0")
        for table in (Task, Usage):
            first = table.objects.order_by("pk").values_list("pk", flat=True)[0]
            nth = (F("pk") - first) / 200
            table.objects.update(owner=Concat(Value("key:"), Cast(nth, CharField())))
        for index in ("task", "usage", "audit"):
            cursor.execute(f"reindex index a2a_tasks_{index}_names")
    before = count_rows()
    assert survey(Principal("key:nobody")).tasks == 0
    assert list(Principal("key:nobody").slices()) == list(walk(Principal("x").usage())) == []
    assert count_rows() - before < 10_000  # of 60,000
    before, mine = count_rows(), Principal("key:7")
    assert 199 <= sum(map(len, mine.slices())) <= 200
    assert count_rows() - before < 10_000  # of 60,000
