"""Entries: written with what they are of, or not at all, and never changed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest
from django.db import DatabaseError, connection, transaction

from a2a_tasks.audit import Action, act_as
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.protocol.errors import TaskNotCancelable
from a2a_tasks.store import audit, audit_seals, cancel
from a2a_tasks.store.audit_triggers import TABLES, are_installed, unlock
from a2a_tasks.store.replies import reply
from tests.backend import SQLITE, backend
from tests.support.store.world import ALICE, BOB, Pen, accepted, held, new

#: The migration that makes the triggers.
TRIGGERS = import_module("a2a_tasks.migrations.0002_triggers_and_collation")
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_audit_log")]


def told() -> list[tuple[str, str, str]]:
    """Who did what to what."""
    rows = AuditEntry.objects.order_by("pk")
    return list(rows.values_list("actor", "action", "object"))


class TestNote:
    def test_says_who_did_what_to_what_and_where(self) -> None:
        with act_as(lambda: "staff:7", "r-1"):
            audit.note(Action.TASK_CANCEL, "task-1", scope=BOB, detail={"why": "enough"})
        row = AuditEntry.objects.get()
        assert (row.actor, row.tenant, row.agent) == ("staff:7", BOB.tenant, "demo")
        assert (row.action, row.object, row.outcome) == ("task.cancel", "task-1", "done")
        assert (row.detail, row.request) == ('{"why":"enough"}', "r-1")
        assert row.created_at is not None

    def test_cuts_what_is_nobodys_name(self) -> None:
        audit.note(Action.KEY_CREATE, detail={"scopes": "x" * 5000, "count": 7})
        assert len(AuditEntry.objects.get().detail) < 300

    def test_is_undone_with_what_it_is_of(self) -> None:
        def fail() -> None:
            audit.note(Action.KEY_CREATE)
            raise RuntimeError

        with pytest.raises(RuntimeError), transaction.atomic():
            fail()
        assert not AuditEntry.objects.exists()


class TestTasks:
    def test_a_send_is_an_entry_of_its_transaction(self) -> None:
        accepted("task-1", request_id="r-1")
        row = AuditEntry.objects.get()
        assert told() == [("user:alice", "task.send", "task-1")]
        assert (row.agent, row.outcome, row.detail, row.request) == ("demo", "done", "", "r-1")

    def test_a_reply_is_one_more(self) -> None:
        Pen(held())
        reply(new(context_id="", text="more"))
        assert told() == [("user:alice", "task.send", "task-1")] * 2

    def test_what_is_refused_leaves_none(self) -> None:
        accepted()
        with pytest.raises(Exception, match=r"."), transaction.atomic():
            accepted()
        assert len(told()) == 1

    def test_a_cancel_by_its_owner_and_one_by_an_operator(self) -> None:
        accepted("task-1")
        cancel.cancel(ALICE, "task-1")
        key = accepted("task-2").task
        with act_as(lambda: "staff:7"):
            cancel.cancel_by_key(key)
        with pytest.raises(TaskNotCancelable):
            cancel.cancel(ALICE, "task-2")
        assert told()[1] == ("user:alice", "task.cancel", "task-1")
        assert told()[3:] == [("staff:7", "task.cancel", "task-2")]


CHANGES: dict[str, Callable[[], object]] = {
    "an entry altered": lambda: AuditEntry.objects.update(actor="mallory"),
    "an entry removed": lambda: AuditEntry.objects.all().delete(),
    "a link altered": lambda: AuditLink.objects.update(hash="0"),
    "a link removed": lambda: AuditLink.objects.all().delete(),
    "a seal altered": lambda: AuditSeal.objects.update(hash="0"),
    "a seal removed": lambda: AuditSeal.objects.all().delete(),
}


class TestTheTriggers:
    @pytest.mark.parametrize("change", sorted(CHANGES))
    def test_refuse_every_change(self, change: str) -> None:
        accepted()
        audit_seals.seal_all()
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            CHANGES[change]()

    @pytest.mark.parametrize("change", sorted(CHANGES))
    def test_can_be_unlocked_for_one_transaction(self, change: str) -> None:
        accepted()
        audit_seals.seal_all()
        with transaction.atomic():
            with unlock():
                CHANGES[change]()
            with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
                accepted("task-2")
                AuditEntry.objects.update(actor="mallory")

    @pytest.mark.backend("stack")
    def test_refuse_to_empty_a_table_at_once(self) -> None:
        accepted()
        audit_seals.seal_all()
        for table in TABLES:
            with (
                pytest.raises(DatabaseError, match="append-only"),
                transaction.atomic(),
                connection.cursor() as cursor,
            ):
                cursor.execute(f"truncate {table} cascade")

    @pytest.mark.backend("stack")
    def test_that_one_may_be_emptied_at_once_is_missed(self) -> None:
        with connection.schema_editor() as editor:
            editor.execute("drop trigger a2a_tasks_auditlink_truncate on a2a_tasks_auditlink")
        assert not are_installed()
        with connection.schema_editor() as editor:
            TRIGGERS.remove(None, editor)
            TRIGGERS.install(None, editor)
        assert are_installed()

    @pytest.mark.django_db(transaction=backend() == SQLITE)  # whose editor begins its own
    def test_are_all_there_and_missed_if_they_are_not(self) -> None:
        assert are_installed()
        with connection.schema_editor() as editor:
            TRIGGERS.remove(None, editor)
        assert not are_installed()
        with connection.schema_editor() as editor:
            TRIGGERS.install(None, editor)
        assert are_installed()
