"""Sealing: every committed entry gets its place, once, though it comes to light late."""

from __future__ import annotations

import threading

import pytest
from django.db import transaction

from a2a_console.audit.proof import verify
from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.store import audit, audit_seals
from tests.support.execution.waiting import eventually
from tests.support.store.world import at_once

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("empty_audit_log"),
]


def write(*names: str) -> None:
    """Entries about these, in one transaction."""
    with transaction.atomic():
        for name in names:
            audit.note(Action.TASK_SEND, name)


def chained() -> list[str]:
    """What was sealed, in the order of the chain."""
    return list(AuditLink.objects.order_by("pk").values_list("entry__object", flat=True))


def whole() -> int:
    """How many entries are verified."""
    (*_, proof) = verify()
    assert proof.unsealed == 0
    return proof.verified


def floor() -> int:
    """Up to where nobody looks again."""
    last = audit_seals.newest_seal()
    return last.floor if last else 0


class TestSeal:
    def test_chains_what_there_is_in_order_and_seals_the_end(self) -> None:
        assert audit_seals.seal() == 0
        write("a", "b")
        assert audit_seals.seal() == 2
        write("c")
        assert audit_seals.seal() == 1
        assert chained() == ["a", "b", "c"]
        assert list(AuditSeal.objects.order_by("pk").values_list("pk", flat=True)) == [2, 3]
        assert whole() == 3

    def test_goes_on_in_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit_seals, "MAX_COUNT", 2)
        write(*"abcde")
        assert [audit_seals.seal() for _ in range(4)] == [2, 2, 1, 0]
        assert whole() == 5

    def test_an_idle_one_writes_nothing(self) -> None:
        write("a")
        audit_seals.seal_all()
        assert audit_seals.seal() == 0
        assert AuditSeal.objects.count() == 1

    @pytest.mark.backend("sqlite")  # on PostgreSQL transactions of other databases count, too
    def test_looks_no_further_back_than_it_has_to(self) -> None:
        for name in "abc":
            write(name)
            audit_seals.seal_all()
        last = audit_seals.newest_seal()
        assert last is not None
        newest = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True)[0]
        assert last.newest == newest
        assert last.floor == newest - 1  # what came with it may not be all there is yet

    @pytest.mark.django_db(transaction=True)
    def test_many_at_once_seal_each_entry_once(self) -> None:
        write(*map(str, range(40)))
        counts = at_once(*[audit_seals.seal_all] * 4)
        assert sum(count for count in counts if isinstance(count, int)) == 40
        assert whole() == 40

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    @pytest.mark.timeout(600)
    def test_an_entry_that_comes_to_light_late_is_sealed_too(self) -> None:
        """Its number was given before those that are sealed already, its transaction ended after them."""
        begun, finish = threading.Event(), threading.Event()

        def late() -> None:
            with transaction.atomic():
                audit.note(Action.TASK_SEND, "late")
                begun.set()
                assert finish.wait(10)

        def others() -> None:
            assert begun.wait(10)
            for name in "abc":
                write(name)
                audit_seals.seal_all()
            finish.set()

        assert at_once(late, others) == [None, None]
        write("d")
        audit_seals.seal_all()
        assert sorted(chained()) == ["a", "b", "c", "d", "late"]
        assert chained().index("late") > chained().index("c")
        passed = AuditEntry.objects.get(object="d").pk

        def is_passed() -> bool:
            write("e")
            audit_seals.seal_all()
            return floor() >= passed

        eventually(is_passed, 500)  # transactions of other databases count, too: they end
        assert whole() == AuditEntry.objects.count()
