"""Holds: nothing they are on is purged, whatever retention says."""

from __future__ import annotations

import datetime

import pytest
from django.utils import timezone

from a2a_tasks.audit import act_as
from a2a_tasks.caller import TENANTS
from a2a_tasks.models import AuditEntry, Delegation, Event, Hold, Task
from a2a_tasks.store import cancel, legal_holds
from a2a_tasks.store.legal_holds import HoldKind
from a2a_tasks.store.purge import RetentionLimits, purge, survey
from a2a_tasks.store.retention import set_days
from tests.support.store.world import ALICE, accepted

pytestmark = [
    pytest.mark.quick_on("stack"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("empty_audit_log"),
]

DAY = datetime.timedelta(days=1)


def ended(name: str, days: float = 10, *, tenant: str = "acme", owner: str = "user:alice") -> None:
    """A task that ended so long ago."""
    scope = ALICE.__class__(tenant, owner, "demo")
    task = accepted(name, scope=scope, context_id=f"context-{name}").task
    cancel.cancel_by_key(task)
    then = timezone.now() - days * DAY
    Task.objects.filter(pk=task).update(status_at=then, created_at=then)


def names() -> list[str]:
    return sorted(Task.objects.values_list("public_id", flat=True))


def swept(days: float = 1, event_days: float = 0) -> list[str]:
    """What is left after a purge, which the survey knew before."""
    limits = RetentionLimits.from_settings(days, event_days)
    expected = survey(limits)
    done = [removed for removed in purge(limits) if removed.rows]
    assert sum(removed.tasks for removed in done) == expected.tasks
    return names()


def called_by(parent: str, child: str, level: int) -> None:
    caller, called = (Task.objects.get(public_id=name) for name in (parent, child))
    about = {"name": "call", "root": caller.pk, "depth": level, "path": "[]", "open": False}
    Delegation.objects.create(parent=caller, child=called, input_number=1, **about)


class TestAHold:
    def test_says_who_laid_and_released_it_and_why(self) -> None:
        with act_as(lambda: "staff:7"):
            row = legal_holds.lay(HoldKind.TENANT, "acme", " a lawsuit ")
        assert (row.by, row.reason) == ("staff:7", "a lawsuit")
        assert list(legal_holds.in_force()) == [row]
        with act_as(lambda: "staff:8"):
            assert legal_holds.release(row.pk)
        assert not legal_holds.release(row.pk)
        assert not legal_holds.in_force().exists()
        assert Hold.objects.get().released_by == "staff:8"

    @pytest.mark.parametrize(("kind", "name", "reason"), [("task", "", "x"), ("tenant", "a", " ")])
    def test_has_a_reason_and_something_it_is_on(self, kind: str, name: str, reason: str) -> None:
        with pytest.raises(ValueError, match=r"reason|name of the task"):
            legal_holds.lay(HoldKind(kind), name, reason)
        assert not AuditEntry.objects.exists()

    def test_is_laid_once_at_a_time(self) -> None:
        first = legal_holds.lay(HoldKind.TASK, "t", "x")
        with pytest.raises(legal_holds.AlreadyHeld):
            legal_holds.lay(HoldKind.TASK, "t", "y")
        legal_holds.release(first.pk)
        legal_holds.lay(HoldKind.TASK, "t", "y")


class TestRetention:
    @pytest.mark.parametrize(
        ("kind", "name", "stay"),
        [
            ("tenant", "acme", ["below", "other", "own"]),
            ("tenant", "acme/eu", ["below"]),
            ("tenant", "acm", []),
            ("tenant", "Acme", []),
            ("tenant", "", ["none"]),
            ("principal", "user:bob", ["other"]),
            ("context", "context-own", ["own"]),
            ("task", "own", ["own"]),
        ],
    )
    def test_leaves_what_is_held(self, kind: str, name: str, stay: list[str]) -> None:
        ended("own")
        ended("other", owner="user:bob")
        ended("below", tenant="acme/eu")
        ended("none", tenant="")
        row = legal_holds.lay(HoldKind(kind), name, "a lawsuit")
        assert swept() == stay
        legal_holds.release(row.pk)
        assert swept() == []

    def test_leaves_what_a_held_principal_made_for_its_tenant(self) -> None:
        ended("own", owner=TENANTS)
        ended("other", owner=TENANTS)
        Task.objects.filter(public_id="own").update(created_by="user:alice")
        Task.objects.filter(public_id="other").update(created_by="user:bob")
        legal_holds.lay(HoldKind.PRINCIPAL, "user:alice", "a lawsuit")
        assert swept() == ["own"]

    def test_leaves_the_log_of_what_is_held(self) -> None:
        ended("own")
        ended("other", owner="user:bob")
        legal_holds.lay(HoldKind.TASK, "own", "a lawsuit")
        swept(days=0, event_days=1)
        logged = set(Event.objects.values_list("task__public_id", flat=True))
        assert logged == {"own"}

    def test_leaves_the_audit_log_while_anything_is_held(self) -> None:
        ended("own")
        legal_holds.lay(HoldKind.TASK, "another", "a lawsuit")
        now = timezone.now() + DAY
        before = AuditEntry.objects.count()
        assert list(purge(RetentionLimits(audit=now))) == []
        assert AuditEntry.objects.count() == before


class TestTenants:
    def test_have_days_of_their_own(self) -> None:
        for name, tenant in (("a", "short"), ("b", "long"), ("c", "other"), ("d", "for ever")):
            ended(name, 10, tenant=tenant)
        set_days("short", 5)
        set_days("long", 50)
        set_days("for ever", 0)
        assert swept(days=20) == ["b", "c", "d"]
        assert swept(days=7) == ["b", "d"]
        set_days("long", None)
        assert swept(days=7) == ["d"]

    def test_are_purged_though_the_host_keeps_everything(self) -> None:
        ended("a", tenant="short")
        ended("b", tenant="other")
        set_days("short", 5)
        assert swept(days=0) == ["b"]

    def test_keep_their_logs_as_long_as_the_host_says(self) -> None:
        ended("a", tenant="long")
        ended("b", tenant="other")
        set_days("long", 50)
        swept(days=9, event_days=1)
        assert names() == ["a"]
        assert not Event.objects.exists()

    @pytest.mark.parametrize("days", [-1.0, float("nan"), float("inf")])
    def test_have_a_number_of_days(self, days: float) -> None:
        with pytest.raises(ValueError, match="Days"):
            set_days("acme", days)


class TestATree:
    @pytest.mark.parametrize(
        ("kind", "name", "left"),
        [
            (HoldKind.TASK, "root", ["leaf", "middle", "root"]),
            (HoldKind.CONTEXT, "context-root", ["leaf", "middle", "root"]),
            (HoldKind.TASK, "middle", ["leaf", "middle"]),
            (HoldKind.TASK, "leaf", ["leaf"]),
        ],
    )
    def test_is_held_below_the_held_task(self, kind: HoldKind, name: str, left: list[str]) -> None:
        for each in ("root", "middle", "leaf", "other"):
            ended(each)
        called_by("root", "middle", 1)
        called_by("middle", "leaf", 2)
        with act_as(lambda: "staff:7"):
            hold = legal_holds.lay(kind, name, "a lawsuit")
        assert swept() == left
        with act_as(lambda: "staff:7"):
            legal_holds.release(hold.pk)
        assert swept() == []
