"""The index of rare values: a list looks for them without reading what lies between."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import Q

from a2a_tasks.models import Task
from tests.support.console.admin.rows import make_task
from tests.support.rows import rows

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]


@pytest.fixture
def many() -> None:
    """Tasks of few, and one of somebody else."""
    like = make_task("like")
    columns = {str(field.column) for field in Task._meta.concrete_fields} - {"id"}
    own = {"public_id": "'t-' || n", "owner": "'key:' || mod(n, 3)", "tenant": "'acme'"}
    copied = ", ".join(sorted(columns - own.keys()))
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into a2a_tasks_task ({', '.join(own)}, {copied})"  # noqa: S608 - names of our own columns
            f" select {', '.join(own.values())}, {copied}"
            " from a2a_tasks_task, generate_series(1, 20000) n where id = %s order by n",
            [like.pk],
        )
    make_task("rare", owner="carol", dialect="v01")
    with connection.cursor() as cursor:
        cursor.execute("select brin_summarize_new_values('a2a_tasks_task_names')")
        cursor.execute("analyze a2a_tasks_task")


@pytest.mark.usefixtures("many")
@rows(
    "asked",
    [
        Q(owner="carol") | Q(created_by="carol"),
        Q(owner="nobody") | Q(created_by="nobody"),
        Q(tenant="globex"),
        Q(origin_dialect="v01"),
        Q(origin_binding="HTTP+JSON"),
    ],
    ids=str,
)
def test_finds_what_is_rare_without_what_lies_between(asked: Q) -> None:
    last = Task.objects.order_by("-pk").values_list("pk", flat=True)[0]
    found = Task.objects.filter(asked, pk__gt=last - 20_000, pk__lte=last).order_by("-pk")[:51]
    plan = found.explain(analyze=True, buffers=True)
    assert "on a2a_tasks_task_names" in plan
    removed = [int(line.split(": ")[1]) for line in plan.splitlines() if "Removed by" in line]
    assert sum(removed) < 2_000, plan


@pytest.mark.usefixtures("many")
def test_is_left_alone_for_what_is_common() -> None:
    found = Task.objects.filter(tenant="acme").order_by("-pk")[:51]
    assert "a2a_tasks_task_names" not in found.explain()
