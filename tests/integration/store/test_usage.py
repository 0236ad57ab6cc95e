"""The ledger of usage: rows of earlier versions."""

from __future__ import annotations

import importlib
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from a2a_tasks.models import Run, Usage
from a2a_tasks.store.usage import sum_by_task
from tests.support.store.world import held

pytestmark = [pytest.mark.quick_on("sqlite"), pytest.mark.django_db]

ledger = importlib.import_module("a2a_tasks.migrations.0011_without_long_locks")


def make_apps() -> Any:
    """The models before the migration: tasks still have their sums, and the ledger is there."""
    before = ledger.Migration.dependencies
    return MigrationExecutor(connection).loader.project_state(before).apps


class TestSumsOfEarlierVersions:
    def test_become_rows_once(self) -> None:
        run = held()
        apps = make_apps()
        task, step = apps.get_model("a2a_tasks", "Task"), apps.get_model("a2a_tasks", "Step")
        sums = '{"m":{"requests":2,"inputTokens":7,"cost":0.1},"n":{"outputTokens":3}}'
        task.objects.filter(pk=run.task).update(usage=sums, maker="user:maker")
        step.objects.create(
            task_id=run.task,
            input_number=1,
            name="ask",
            result='{"urn:a2a-host:usage":{"n":{"requests":1}},"result":7}',
            run=run.run,
        )
        for _ in range(2):
            ledger.copy_sums(apps, SimpleNamespace())
        found = sum_by_task([run.task])[run.task]
        assert (found["m"].requests, found["m"].input_tokens, found["m"].cost) == (2, 7, 0.1)
        assert (found["n"].requests, found["n"].output_tokens) == (1, 3)
        row = Usage.objects.get(model="m")
        assert (row.cost, row.currency) == (Decimal("0.1"), "XXX")
        assert (row.task_id, row.context_id) == (run.task_id, run.context_id)
        assert (row.owner, row.caller) == (run.scope.owner, "user:maker")
        assert Usage.objects.get(step="ask").run == run.run

    def test_in_steps_of_turns_that_have_ended_are_in_those_of_the_task(self) -> None:
        run = held()
        apps = make_apps()
        apps.get_model("a2a_tasks", "Step").objects.create(
            task_id=run.task,
            input_number=1,
            name="ask",
            result='{"urn:a2a-host:usage":{"n":{"requests":1}},"result":7}',
            run=run.run,
        )
        Run.objects.filter(pk=run.run).update(status="ended", token="", lease_until=None)
        ledger.copy_sums(apps, SimpleNamespace())
        assert not Usage.objects.exists()
