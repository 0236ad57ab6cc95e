"""What must never happen, the database refuses, by a name that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from a2a_tasks.models import (
    AgentSwitch,
    AgentVersion,
    Artifact,
    Budget,
    BudgetHold,
    BudgetUse,
    BulkJob,
    BulkResult,
    Context,
    ConversationList,
    Delegation,
    Event,
    Grant,
    HandedSecret,
    Hold,
    Idempotency,
    Message,
    Run,
    SavedView,
    Tally,
    Task,
    TenantRetention,
)
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store.accept import accept
from a2a_tasks.store.idempotency import IdempotencyKey, remember
from tests.support.store.world import ALICE, AT, accepted, held, new

pytestmark = pytest.mark.django_db


def copied(row: Any) -> Callable[[], object]:
    """Insert a row once more, under a key of its own."""

    def insert() -> object:
        row.pk = None
        return type(row).objects.bulk_create([row])

    return insert


def second_context() -> object:
    accepted()
    return copied(Context.objects.get())()


def second_list() -> object:
    accepted()
    row = ConversationList(context=Context.objects.get(), key="log", version=1, count=0, size=0)
    copied(row)()
    return copied(row)()


def second_task() -> object:
    accepted()
    return copied(Task.objects.get())()


def second_tally() -> object:
    Tally.objects.create(agent="demo")
    return Tally.objects.create(agent="demo")


def second_key() -> object:
    accept(new(companions=(remember(IdempotencyKey(ALICE, "key/1", "f")),)))
    return copied(Idempotency.objects.get())()


def second_grant() -> object:
    Grant.objects.create(agent="demo", grantee="*", right="see")
    return Grant.objects.create(agent="demo", grantee="*", right="see")


def make_job(user: User, nonce: str = "n") -> BulkJob:
    return BulkJob.objects.create(
        user=user, nonce=nonce, action="cancel", choice="{}", before=1, found=0
    )


def second_job() -> object:
    user = User.objects.create()
    make_job(user)
    return make_job(user)


def second_result() -> object:
    row = {"job": make_job(User.objects.create()), "task": 1}
    BulkResult.objects.create(**row)
    return BulkResult.objects.create(**row)


def second_view() -> object:
    row = {"user": User.objects.create(), "name": "mine"}
    SavedView.objects.create(**row)
    return SavedView.objects.create(**row)


def held_after_the_end(state: str) -> Callable[[], object]:
    return lambda: Task.objects.filter(pk=held().task).update(state=state)


def two_at_a_time() -> object:
    run = held()
    return Run.objects.create(
        task_id=run.task, input_number=1, queue="q", status="running", token="x", lease_until=Now()
    )


def second_hold() -> object:
    Hold.objects.create(kind="task", name="t", reason="x", released_at=Now())
    Hold.objects.create(kind="task", name="t", reason="x")
    return Hold.objects.create(kind="task", name="t", reason="y")


def negative_days() -> object:
    return TenantRetention.objects.create(tenant="acme", days=-1)


def negative_canary() -> None:
    AgentSwitch.objects.create(slug="demo", canary_percent=-1)


def canary_above_all() -> None:
    AgentSwitch.objects.create(slug="demo", canary_percent=100.5)


def second_announcement() -> None:
    for environment in ("adk", "strands"):
        AgentVersion.objects.create(slug="demo", version="1.0", environment=environment)


def negative_limit() -> object:
    return AgentSwitch.objects.create(slug="demo", by="user:1", max_running=-1)


def second_link() -> object:
    for task in ("task-1", "task-2"):
        HandedSecret.objects.create(
            task_id=accepted(task).task, names="[]", asked_in=1, token_hash="x", expires_at=Now()
        )
    return None


def make_budget(**about: Any) -> Callable[[], object]:
    values = {"name": "models", "unit": "cost", "limit": 5, **about}
    return lambda: Budget.objects.create(**values)


def second_sum() -> object:
    budget = Budget.objects.create(name="models", unit="cost", limit=5)
    for _ in range(2):
        BudgetUse.objects.create(budget=budget, since=AT)
    return None


def second_reservation() -> object:
    for _ in range(2):
        BudgetHold.objects.create(budget=1, use=1, run=1, amount=1)
    return None


def changed_run(**changes: Any) -> Callable[[], object]:
    return lambda: Run.objects.filter(pk=held().key).update(**changes)


def second_child() -> object:
    about = {"parent_id": accepted("parent").task, "input_number": 1, "name": "call"}
    about |= {"root": about["parent_id"], "depth": 1, "path": "[]"}
    calls = [Delegation(child_id=accepted(name).task, **about) for name in ("one", "two")]
    return Delegation.objects.bulk_create(calls)


CASES: dict[str, list[Callable[[], object]]] = {
    "context_id_is_unique_per_owner": [second_context],
    "a_list_has_a_key_of_its_own": [second_list],
    "task_id_is_unique_per_owner": [second_task],
    "one_tally_per_scope": [second_tally],
    "idempotency_key_is_unique_per_owner": [second_key],
    "a_right_is_granted_once": [second_grant],
    "an_ended_task_is_held_by_no_run": [held_after_the_end(state) for state in sorted(TERMINAL)],
    "one_run_of_a_task_at_a_time": [two_at_a_time],
    "a_running_run_has_token_and_lease": [
        changed_run(token=""),
        changed_run(lease_until=None),
        changed_run(status="queued"),
        changed_run(status="ended"),
        changed_run(status="canceled", lease_until=None),
    ],
    "a_link_opens_one_task": [second_link],
    "held_once_at_a_time": [second_hold],
    "days_are_not_negative": [negative_days],
    "a_limit_is_not_negative": [negative_limit],
    "a_canary_gets_at_most_all": [negative_canary, canary_above_all],
    "a_version_is_announced_once": [second_announcement],
    "a_budget_is_not_negative": [make_budget(limit=-1)],
    "a_pause_has_an_end": [make_budget(action="pause", window="ever")],
    "one_sum_of_a_budget": [second_sum],
    "one_hold_of_a_run": [second_reservation],
    "one_child_of_a_call": [second_child],
    "one_bulk_job_per_form": [second_job],
    "one_result_of_a_job_per_task": [second_result],
    "one_view_of_a_user_per_name": [second_view],
}


@pytest.mark.parametrize(
    ("name", "mistake"), [(name, mistake) for name, all_ in CASES.items() for mistake in all_]
)
def test_the_database_refuses(name: str, mistake: Callable[[], object]) -> None:
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        mistake()
    unnamed = "UNIQUE constraint failed"  # SQLite names the columns of a unique constraint
    assert name in str(refused.value) or (
        connection.vendor == "sqlite" and unnamed in str(refused.value)
    )


def test_every_named_constraint_has_its_case() -> None:
    named = {
        c.name
        for model in apps.get_app_config("a2a_tasks").get_models()
        for c in model._meta.constraints
    }
    assert named == set(CASES)


@pytest.mark.parametrize(
    "row",
    [
        lambda task: Event(task_id=task, number=1, kind=1),
        lambda task: Message(task_id=task, number=1, role="ROLE_USER", body="{}"),
        lambda task: Artifact(task_id=task, position=0, artifact_id="b", first_event=1),
    ],
    ids=["event", "message", "artifact"],
)
def test_a_number_is_given_once(row: Callable[[int], Any]) -> None:
    task = accepted().task
    Artifact.objects.create(task_id=task, position=0, artifact_id="a", first_event=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        type(row(task)).objects.bulk_create([row(task)])
