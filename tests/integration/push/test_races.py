"""Two requests at one task's webhooks: both are answered, and what is left is one of two stories."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from pytest_django import Settings

from a2a_push.models import PushConfig, Receiver
from a2a_push.store import configs, retention
from a2a_push.store.receivers import receiver_of
from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import hooks, sealed_columns
from a2a_tasks.store.replies import reply
from tests.support.push.configs import config, ids
from tests.support.store.world import ALICE, Pen, accepted, at_once, found, held, new

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 12


def race(*works: Callable[[], object], losers: tuple[type[Exception], ...] = ()) -> list[Any]:
    """What the sides returned; a side may also lose by one of these errors."""
    results = at_once(*works)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, losers):
            raise result
    return results


@transaction.atomic
def succeeded(old: int, name: str) -> None:
    """Let a new task take the id of an old one."""
    row = Task.objects.select_for_update().get(pk=old)
    row.public_id = f"{name}-before"
    row.save(update_fields=["public_id"])
    hooks.succeed(old, accepted(name).task)


class TestRaces:
    def test_two_creates_of_one_id_leave_the_whole_of_one(self) -> None:
        for n in range(ROUNDS):
            task = accepted(f"task-{n}").task
            one = config(task_id=f"task-{n}", url="https://one.example", token="one")
            two = config(task_id=f"task-{n}", url="https://two.example", token="two")
            race(*(partial(configs.create, ALICE, each) for each in (one, two)))
            ((_, kept),) = configs.with_secrets(task)
            assert kept in (one, two)

    def test_creates_do_not_pass_the_most_together(self, settings: Settings) -> None:
        settings.A2A_MAX_PUSH_CONFIGS = 2
        for n in range(ROUNDS):
            accepted(f"task-{n}")
            works = (
                partial(configs.create, ALICE, config(f"c-{c}", task_id=f"task-{n}"))
                for c in range(4)
            )
            results = race(*works, losers=(InvalidParams,))
            assert sum(isinstance(result, Exception) for result in results) == 2
            assert len(ids(f"task-{n}")) == 2

    def test_create_and_delete_leave_one_or_none(self) -> None:
        for n in range(ROUNDS):
            accepted(f"task-{n}")
            again = partial(configs.create, ALICE, config(task_id=f"task-{n}"))
            again()
            race(again, partial(configs.delete, ALICE, f"task-{n}", "c-1"))
            assert ids(f"task-{n}") in (["c-1"], [])

    def test_create_and_an_agent_that_speaks_do_not_hinder_each_other(self) -> None:
        for n in range(ROUNDS):
            pen = Pen(held(f"task-{n}"))
            race(
                partial(pen.state, TaskState.WORKING),
                partial(configs.create, ALICE, config(task_id=f"task-{n}")),
            )
            assert found(f"task-{n}").last_event == 2
            assert ids(f"task-{n}") == ["c-1"]

    def test_create_and_a_message_with_the_same_webhook_leave_one(self) -> None:
        for n in range(ROUNDS):
            task = accepted(f"task-{n}").task
            whole = config(task_id=f"task-{n}")
            beside = partial(configs.put, config=whole)
            race(
                partial(configs.create, ALICE, whole),
                partial(reply, new(f"task-{n}", text="and?", companions=(beside,))),
            )
            assert [kept for _, kept in configs.with_secrets(task)] == [whole]

    @pytest.mark.parametrize("again", [False, True], ids=["create", "delete"])
    def test_create_or_delete_and_a_successor_that_takes_the_id(self, again: bool) -> None:
        for n in range(ROUNDS):
            old = accepted(f"task-{n}").task
            whole = config(task_id=f"task-{n}")
            ask: Callable[[], object] = partial(configs.create, ALICE, whole)
            if again:
                ask()
                ask = partial(configs.delete, ALICE, f"task-{n}", "c-1")
            race(ask, partial(succeeded, old, f"task-{n}"))
            assert ids(f"task-{n}") == ([] if again else ["c-1"])

    def test_create_and_a_message_that_begins_the_task_anew(self) -> None:
        """Decision 9, as it is done."""
        for n in range(ROUNDS):
            Pen(held(f"task-{n}", dialect="v01")).end()
            creates = [
                partial(configs.create, ALICE, config(f"c-{c}", task_id=f"task-{n}"))
                for c in range(3)
            ]
            again = new(f"task-{n}", text="again", dialect="v01", reopens=True)
            race(partial(reply, again), *creates)
            assert sorted(ids(f"task-{n}")) == ["c-0", "c-1", "c-2"]

    def test_reseal_and_a_replacement_leave_the_replacement(self) -> None:
        task = accepted().task
        for n in range(ROUNDS):
            configs.create(ALICE, config(token="old"))
            fresh = config(token=f"fresh-{n}")
            race(
                partial(sealed_columns.reseal, configs.SECRETS),
                partial(configs.create, ALICE, fresh),
            )
            ((_, kept),) = configs.with_secrets(task)
            assert kept == fresh

    def test_reseal_and_delete(self) -> None:
        accepted()
        for _ in range(ROUNDS):
            configs.create(ALICE, config())
            race(
                partial(sealed_columns.reseal, configs.SECRETS),
                partial(configs.delete, ALICE, "task-1", "c-1"),
            )
            assert not PushConfig.objects.exists()

    @pytest.mark.backend("stack")
    def test_create_and_retention_leave_the_receiver(self) -> None:
        """Whoever registers has seen it, and not yet committed, when retention comes to it."""
        old = Now() - datetime.timedelta(days=40)
        key = receiver_of("", "https://hooks.example.com/a2a")
        Receiver.objects.update(created_at=old)
        accepted()
        with transaction.atomic():
            configs.create(ALICE, config())
            assert at_once(partial(retention.forget, 100)) == [0]
        assert PushConfig.objects.get().receiver_id == key

    @pytest.mark.backend("stack")
    def test_retention_and_create_leave_a_receiver(self) -> None:
        """Whoever registers waits for retention, and makes a new one."""
        key = receiver_of("", "https://hooks.example.com/a2a")
        accepted()
        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                Receiver.objects.select_for_update().get(pk=key).delete()
                creating = pool.submit(at_once, partial(configs.create, ALICE, config()))
            (made,) = creating.result(30)
        assert not isinstance(made, BaseException)
        assert PushConfig.objects.get().receiver_id != key
