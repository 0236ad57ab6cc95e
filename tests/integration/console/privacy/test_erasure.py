"""Erasure: everything of one principal goes and nothing of anybody else, and the audit log says so and holds."""

from __future__ import annotations

import collections
import io
import itertools
import json
import re
import threading
import tracemalloc
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from a2a_console.audit.proof import Broken, verify
from a2a_console.bulk import jobs
from a2a_console.bulk.actions import Choice
from a2a_console.management.commands import privacy
from a2a_console.privacy import erasure
from a2a_console.privacy.erasure import Erasure, erase, survey
from a2a_console.privacy.export import documents
from a2a_console.privacy.principal import Principal
from a2a_console.search.selection import Selection
from a2a_push.models import Attempt, Delivery, DeliveryStatus, PushConfig
from a2a_tasks.access import auth_failures, authentication, grants
from a2a_tasks.access.api_keys import issue
from a2a_tasks.access.authentication import Credentials, identify
from a2a_tasks.agents.usage import make_report
from a2a_tasks.audit import Action, act_as
from a2a_tasks.caller import TENANTS, OwnerScope, scope_in
from a2a_tasks.conversation_changes import ConversationChanges, ListChange, MemoryChange, ValueKind
from a2a_tasks.models import (
    ApiKey,
    AuditEntry,
    Budget,
    BudgetUse,
    BulkJob,
    Context,
    ConversationItem,
    ConversationList,
    ConversationMemory,
    Event,
    GrantRight,
    Hold,
    Run,
    SavedView,
    StoredFile,
    Task,
    Usage,
)
from a2a_tasks.protocol.errors import WrongCredentials
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.store import audit, audit_seals, budgets, files, legal_holds, run_lines, usage
from a2a_tasks.store.audit_triggers import unlock
from a2a_tasks.store.idempotency import IdempotencyKey, remember
from a2a_tasks.store.legal_holds import HoldKind
from a2a_tasks.store.parking import Parking, park, wake
from a2a_tasks.store.records import Spender, UsageEntry
from a2a_tasks.store.replies import reply
from a2a_tasks.store.run_lines import RunLogLine
from a2a_tasks.store.tasks import list_tasks
from tests.support.console.api.world import asked
from tests.support.execution.waiting import eventually, somebody_waits_for_a_row
from tests.support.push.rows import add_attempt, make_config, make_delivery
from tests.support.store.world import AT, Pen, accepted, at_once, claim, held, new

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("empty_audit_log"),
    pytest.mark.quick_on("sqlite"),
]

CANARY = "key:canary7f3a"
MINE, OTHERS = OwnerScope("acme", CANARY, "demo"), OwnerScope("acme", "user:bob", "demo")


def kept_by(owner: str) -> ConversationChanges:
    values = [
        MemoryChange("name", 0, ValueKind.TEXT, owner.encode()),
        MemoryChange("bytes", 0, ValueKind.BYTES, b"\xff"),
        MemoryChange("json", 0, ValueKind.JSON, b'{"a":1}'),
    ]
    return ConversationChanges(values, [ListChange(owner, 0, 0, False, [f'"{owner}"'] * 3, 9)])


def world() -> None:
    """Two principals with everything there is: a running task, an ended one, webhooks that wait, a known request."""
    for scope in (MINE, OTHERS):
        remembered = remember(IdempotencyKey(scope, "key/1", "f"))
        run = held("running", scope=scope, companions=(remembered,))
        run_lines.write([RunLogLine(run.key, 1, AT, 20, "x", f"asked by {scope.owner}")])
        report = make_report("m", 0.5, "USD", requests=1, input_tokens=7)
        assert report
        spender = Spender(scope.agent, "", scope.owner, run.task)
        usage.write_many([[UsageEntry(run, spender, report)]])
        pen = Pen(run)
        pen.begin("a", "said")
        done = Pen(held("done", scope=scope))
        done.end(conversation=kept_by(scope.owner))
        config = make_config(Task.objects.get(public_id="running", owner=scope.owner), scope.owner)
        add_attempt(make_delivery(config, DeliveryStatus.PENDING))
        list_tasks(scope, ListTasksRequest())
    budget = Budget.objects.create(name="mine", unit="cost", limit=5, share="caller", caller=CANARY)
    BudgetUse.objects.create(budget=budget, subject=CANARY, since=AT, used=3)
    audit.note(Action.PRIVACY_EXPORT, CANARY, tenant="acme")


def erased(principal: Principal | None = None) -> Erasure:
    (*_, done) = erase(principal or Principal(CANARY))
    return done


def verified() -> Any:
    audit_seals.seal_all()
    (*_, proof) = verify()
    return proof


def everywhere(text: str) -> list[str]:
    """The tables in which a text stands, in whatever column."""
    found = []
    for model in apps.get_models():
        with connection.cursor() as cursor:
            cursor.execute(f"select * from {model._meta.db_table}")  # noqa: S608 - names of our own
            if any(text in str(value) for row in cursor.fetchall() for value in row):
                found.append(model._meta.label)
    return found


class TestErase:
    def test_the_ledger_keeps_its_figures_without_the_name(self) -> None:
        world()
        done = erased()
        mine, others = Usage.objects.order_by("pk")
        assert (mine.owner, mine.caller, mine.task_id, mine.context_id) == (
            done.name,
            done.name,
            "",
            "",
        )
        assert (mine.input_tokens, mine.cost) == (7, Decimal("0.5"))
        assert (others.owner, others.caller, others.task_id) == ("user:bob", "user:bob", "running")

    def test_a_budget_keeps_its_sum_without_the_name(self) -> None:
        world()
        done = erased()
        use = BudgetUse.objects.select_related("budget").get()
        assert (use.used, use.subject, use.budget.caller) == (Decimal(3), done.name, done.name)

    def test_what_its_agents_spend_after_it_counts_for_no_caller(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for share, unit in itertools.product(("all", "caller"), ("tokens", "seconds")):
            Budget.objects.create(name=f"{share} {unit}", unit=unit, limit=50, share=share)
        monkeypatch.setattr(budgets, "_known", budgets.read_budgets())
        run = held("running", scope=MINE)
        spender = Spender(run.scope.agent, "", MINE.owner, run.task)
        erased()
        report = make_report("m", 0.5, "USD", requests=1, input_tokens=7)
        assert report
        usage.write_many([[UsageEntry(run, spender, report)]])
        budgets.charge_many([(spender, budgets.Amounts(seconds=3))])
        uses = BudgetUse.objects.order_by("budget").values_list("budget__name", "subject", "used")
        assert list(uses) == [
            ("all tokens", "", Decimal(7)),
            ("all seconds", "", Decimal(3)),
        ]

    def test_what_was_decided_about_its_budget_forgets_it(self) -> None:
        world()
        use = BudgetUse.objects.get()
        budgets.allow(use.pk, Decimal(1))
        budgets.refuse(use.pk)
        erased()
        assert everywhere("canary7f3a") == []
        entry = AuditEntry.objects.get(action=Action.BUDGET_ALLOW)
        assert json.loads(entry.detail) == {"use": use.pk, "amount": "1"}
        verified()

    def test_nothing_of_the_principal_is_left_in_any_table(self) -> None:
        world()
        assert len(everywhere("canary7f3a")) > 3
        done = erased()
        assert everywhere("canary7f3a") == []
        assert (done.removed.tasks, done.cancelled, done.left) == (2, 1, 0)
        assert (
            done.entries == AuditEntry.objects.filter(actor=done.name).count() + 1
        )  # and one about it

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_what_somebody_is_at_just_now_is_waited_for(self) -> None:
        """As of the fold of an artifact, which begins when its task ends."""
        Pen(held("done", scope=MINE)).end()
        locked = threading.Event()

        def folds() -> None:
            with transaction.atomic():
                Task.objects.select_for_update().get(public_id="done")
                locked.set()
                eventually(somebody_waits_for_a_row)

        def erases() -> Erasure:
            assert locked.wait(30)
            return erased()

        fault, done = at_once(folds, erases)
        assert fault is None
        assert isinstance(done, Erasure)
        assert (done.removed.tasks, done.left) == (1, 0)

    def test_what_waits_goes_and_whatever_waits_of_others_goes_on(self) -> None:
        """A parked run, one that runs, what waits behind them, and a run in the queue; of somebody else, too."""
        for scope in (MINE, OTHERS):
            park(Parking(held("parked", scope=scope, ordered=True), "night", 2e9))
            accepted("behind the parked", scope=scope, ordered=True)
            held("at work", scope=scope)
            reply(new("at work", text="and?", scope=scope))
            accepted("queued", scope=scope)
        done = erased()
        assert (done.cancelled, done.removed.tasks, done.left) == (4, 4, 0)
        rows = Run.objects.order_by("pk").values_list("task__public_id", "task__owner", "status")
        assert [(task, status) for task, _, status in rows] == [
            ("parked", "queued"),
            ("behind the parked", "queued"),
            ("at work", "running"),
            ("at work", "queued"),
            ("queued", "queued"),
        ]
        assert {owner for _, owner, _ in rows} == {OTHERS.owner}
        assert [taken.task_id for taken in claim()] == ["queued"]
        Run.objects.filter(task__public_id="parked").update(due_at=AT)
        wake()
        (woken,) = claim()
        Pen(woken).end()
        assert [taken.task_id for taken in claim()] == ["behind the parked"]

    def test_what_its_tenant_shares_forgets_it_and_stays(self) -> None:
        shared = OwnerScope("acme", TENANTS, "demo")
        remembered = remember(IdempotencyKey(MINE, "key/2", "f"))
        held("others", scope=shared, companions=(remembered,))
        Task.objects.update(created_by="user:bob")
        made = held("made", scope=shared).task
        Task.objects.filter(pk=made).update(created_by=CANARY)
        erased()
        assert everywhere("canary7f3a") == []
        assert list(Task.objects.values_list("public_id", flat=True)) == ["others"]

    def test_it_looks_for_nothing_in_large_tables_while_it_holds_rows_of_budgets(self) -> None:
        """Runs of agents wait for these rows."""
        world()
        held("others", scope=OwnerScope("acme", TENANTS, "demo"))
        said: list[tuple[tuple[str, ...], str]] = []

        def note(execute: Any, sql: str, *rest: Any) -> Any:
            said.append((tuple(connection.savepoint_ids), sql))
            return execute(sql, *rest)

        with connection.execute_wrapper(note):
            erased()
        (inside,) = {ids for ids, sql in said if sql.startswith('UPDATE "a2a_tasks_budget" ')}
        beside = [sql for ids, sql in said if ids[: len(inside)] == inside]
        large = re.compile(r"a2a_tasks_(context|idempotency|run|task|usage|auditentry)\b")
        assert [sql for sql in beside if large.search(sql) and not sql.startswith("INSERT")] == []

    def test_traces_at_shared_tasks_go_in_slices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("a2a_console.privacy.principal.SLICE", 2)
        shared = OwnerScope("acme", TENANTS, "demo")
        for number in range(5):
            remembered = remember(IdempotencyKey(MINE, f"key/{number}", "f"))
            request = json.dumps({"principal": CANARY, "scopes": ["a"], "headers": {}})
            held(f"others-{number}", scope=shared, companions=(remembered,), request=request)
            Context.objects.create(public_id=f"empty-{number}", owner=CANARY, tenant="acme")
        Task.objects.update(created_by="user:bob")
        (*steps, done) = erase(Principal(CANARY))
        assert len(steps) >= 9
        assert done.removed.contexts == 5
        assert everywhere("canary7f3a") == []
        requests = [json.loads(text) for text in Run.objects.values_list("request", flat=True)]
        assert requests == [{"principal": done.name, "scopes": [], "headers": {}}] * 5

    def test_a_hold_that_was_released_stays_without_the_name(self) -> None:
        world()
        row = legal_holds.lay(HoldKind.PRINCIPAL, CANARY, "a lawsuit")
        legal_holds.release(row.pk)
        done = erased()
        row.refresh_from_db()
        assert row.name == done.name
        assert everywhere("canary7f3a") == []

    def test_a_user_is_forgotten_as_staff_too(self) -> None:
        with act_as(lambda: "staff:7170"):
            audit.note(Action.KEY_CREATE, "prefix")
            legal_holds.release(legal_holds.lay(HoldKind.TASK, "t", "a lawsuit").pk)
        with act_as(lambda: "staff:71701"):
            audit.note(Action.KEY_REVOKE, "prefix")
        audit.note(Action.LOGIN, "user:7170", actor="staff:7170")
        assert set(everywhere("staff:7170")) == {"a2a_tasks.AuditEntry", "a2a_tasks.Hold"}
        done = erased(Principal("user:7170"))
        assert everywhere("user:7170") == []
        left = AuditEntry.objects.filter(actor__startswith="staff:7170")
        assert [row.actor for row in left] == ["staff:71701"], "another one's"
        held = Hold.objects.get()
        assert (held.by, held.released_by) == (done.name, done.name)
        verified()

    def test_filters_of_lists_and_jobs_forget_it(self) -> None:
        user = User.objects.create(username="carol")
        query = urlencode({"owner": CANARY, "agent": "demo"})
        SavedView.objects.create(user=user, name="theirs", query=query)
        wanted = Selection(owner=CANARY, agent="demo", text="canary7f3a")
        job = jobs.begin("cancel", Choice(selection=wanted), user=user, nonce="1", query=query)
        BulkJob.objects.update(choice=Choice(selection=Selection(owner=CANARY)).write())
        done = erased()
        assert everywhere("canary7f3a") == []
        job.refresh_from_db()
        assert Choice.read(job.choice).selection.owner == done.name
        assert job.query == SavedView.objects.get().query == "owner=erased&agent=demo"
        entry = AuditEntry.objects.get(action=Action.BULK_BEGIN)
        assert "'agent': 'demo'" in json.loads(entry.detail)["of"], "what is nobody's stays"
        verified()

    def test_that_grants_went_is_in_the_log(self) -> None:
        grants.grant("demo", CANARY, GrantRight.USE)
        done = erased()
        entry = AuditEntry.objects.get(action=Action.GRANT_REMOVE)
        assert (entry.object, json.loads(entry.detail)) == (
            done.name,
            {"agent": "demo", "right": "use"},
        )
        assert everywhere("canary7f3a") == []
        verified()

    def test_nothing_of_anybody_else_is_touched(self) -> None:
        world()
        kept = (ConversationMemory, ConversationList, ConversationItem)
        models = (Task, Context, *kept, Event, Run, PushConfig, Delivery, Attempt)
        before = [model.objects.count() for model in models]
        erased()
        assert [model.objects.count() * 2 for model in models[:5]] == before[:5]
        assert set(Task.objects.values_list("owner", flat=True)) == {"user:bob"}
        assert Task.objects.filter(state="TASK_STATE_WORKING").exists() is False
        assert [PushConfig.objects.count(), Delivery.objects.count(), Attempt.objects.count()] == [
            1
        ] * 3
        assert AuditEntry.objects.filter(actor="user:bob").count() == 2

    def test_the_log_says_what_went_and_is_whole(self) -> None:
        world()
        done = erased()
        rows = AuditEntry.objects.filter(action="privacy.erase").order_by("pk")
        assert set(rows.values_list("object", flat=True)) == {done.name}
        last = json.loads(rows.reverse()[0].detail)
        assert (last["tasks"], last["cancelled"], last["left"]) == (2, 1, 0)
        assert len(last["digest"]) == 64
        proof = verified()
        assert (proof.unsealed, proof.erased[done.name]) == (0, done.entries)

    def test_the_log_still_shows_when_it_is_forged(self) -> None:
        world()
        done = erased()
        audit_seals.seal_all()
        with unlock():
            AuditEntry.objects.filter(actor="user:bob").update(actor=done.name)
        with pytest.raises(Broken, match="is not what was sealed"):
            verified()

    def test_nothing_of_it_is_left_at_tasks_that_others_share_with_it(self) -> None:
        bob = scope_in("acme", "user:bob", "demo", shared=True)
        accepted("t", scope=bob, principal="user:bob")
        headers = {"x-user-id": CANARY}
        about = {"principal": CANARY, "tenant": "acme", "scopes": ["pay"], "headers": headers}
        said = json.dumps(about)
        mine = scope_in("acme", CANARY, "demo", shared=True)
        remembered = remember(IdempotencyKey(OwnerScope("acme", CANARY, "demo"), "key/1", "f"))
        reply(new("t", scope=mine, principal=CANARY, request=said, companions=(remembered,)))
        lost = StoredFile.objects.create(
            tenant="acme",
            owner=CANARY,
            agent="demo",
            size=1,
            filename="cv of canary7f3a.pdf",
            name="a-file-that-is-lost",
        )
        done = erased()
        assert everywhere("canary7f3a") == []
        run = json.loads(Run.objects.latest("pk").request)
        assert (run["principal"], run["scopes"]) == (done.name, [])
        assert Task.objects.filter(created_by="user:bob").count() == 1
        assert not StoredFile.objects.filter(pk=lost.pk).exists()

    def test_the_bytes_of_its_files_are_gone_at_the_end(self) -> None:
        world()
        storage, names = files._storage(), list[str]()
        for task in (Task.objects.get(public_id="done", owner=CANARY), None):
            row = StoredFile.objects.create(
                task=task,
                tenant="acme",
                owner=CANARY,
                agent="demo",
                size=1,
                filename="cv.pdf",
                name=f"a-file-{len(names)}",
            )
            files._save(row.name, b"x")
            names.append(row.name)
        assert all(map(storage.exists, names))
        erased()
        assert not any(map(storage.exists, names))
        assert not StoredFile.objects.exists()

    def test_can_be_done_again(self) -> None:
        world()
        erased()
        again = erased()
        assert (again.removed.tasks, again.entries) == (0, 0)
        assert verified().unsealed == 0

    def test_takes_the_api_key_too(self) -> None:
        issued = issue("of alice")
        row = issued.row
        issue("another")
        self.refused(row.prefix, f"a2a_{row.prefix}_{'x' * 43}")
        for flaw in ({"rate": "often"}, {"revoked_at": timezone.now()}):
            ApiKey.objects.filter(pk=row.pk).update(**flaw)
            self.refused(row.prefix, issued.key)
        # told by its path, too
        asked(issue("no scope").key, f"/keys/{row.prefix}")
        auth_failures.flush()
        assert len(everywhere(row.prefix)) == 2
        principal = Principal(f"key:{row.prefix}")
        assert survey(principal).keys == 1
        assert erased(principal).keys == 1
        assert set(ApiKey.objects.values_list("name", flat=True)) == {"another", "no scope"}
        assert everywhere(row.prefix) == []
        assert verified().unsealed == 0

    def refused(self, prefix: str, key: str) -> None:
        """Show the key, which does not open."""
        authentication.forget()
        with pytest.raises(WrongCredentials) as caught:
            async_to_sync(identify)(Credentials({"x-api-key": key}, address="10.1.2.3"))
        assert prefix not in caught.value.why

    def test_can_keep_to_a_tenant(self) -> None:
        for tenant in ("acme", "acme/eu", "acme2", "Acme/eu", "ACME", ""):
            accepted("t", scope=OwnerScope(tenant, CANARY, "demo"))
        erased(Principal(CANARY, "acme"))
        left = set(Task.objects.values_list("tenant", flat=True))
        assert left == {"", "acme2", "Acme/eu", "ACME"}
        erased(Principal(CANARY, ""))
        assert set(Task.objects.values_list("tenant", flat=True)) == left - {""}

    def test_anonymous_callers_cannot_be_erased(self) -> None:
        with pytest.raises(ValueError, match="Anonymous"):
            Principal("")

    def test_what_is_held_stays_and_so_does_the_name(self) -> None:
        world()
        legal_holds.lay(HoldKind.TASK, "done", "a lawsuit")
        done = erased()
        assert (done.removed.tasks, done.left, done.entries) == (1, 1, 0)
        assert AuditEntry.objects.filter(actor=CANARY).exists()
        assert Task.objects.filter(owner=CANARY).count() == 1
        mine = ConversationMemory.objects.filter(context__owner=CANARY)
        assert mine.count() == 3, "the held task's conversation"

    def test_who_is_held_stays_whole(self) -> None:
        world()
        legal_holds.lay(HoldKind.PRINCIPAL, CANARY, "a lawsuit")
        assert survey(Principal(CANARY)).held == 2
        done = erased()
        assert (done.removed.tasks, done.cancelled, done.left) == (0, 0, 2)


class TestExport:
    def test_has_what_agents_keep_in_conversations(self) -> None:
        world()
        found = {name: list(rows) for name, rows in documents(Principal(CANARY))}
        assert [(row["key"], row["kind"]) for row in found["memory"]] == [
            ("bytes", "bytes"),
            ("json", "json"),
            ("name", "text"),
        ]
        shown = msgspec.json.decode(msgspec.json.encode(found["memory"]))
        assert [row.get("value", row.get("base64")) for row in shown] == ["/w==", {"a": 1}, CANARY]
        assert {row["context"] for row in shown} == {"context-1"}
        items = msgspec.json.decode(msgspec.json.encode(found["items"]))
        assert [(row["key"], row["number"], row["item"]) for row in items] == [
            (CANARY, number, CANARY) for number in (1, 2, 3)
        ]

    def test_reads_few_rows_at_once(self) -> None:
        pen = Pen(held("large", scope=MINE))
        pen.begin("a", "x")
        for _ in range(40):
            pen.add("a", "x" * 1_000_000)
        tracemalloc.start()
        try:
            for _, rows in documents(Principal(CANARY)):
                collections.deque(rows, maxlen=0)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 30_000_000


class TestSurvey:
    def test_counts_what_there_is_and_changes_nothing(self) -> None:
        world()
        legal_holds.lay(HoldKind.TASK, "done", "a lawsuit")
        found = survey(Principal(CANARY))
        assert (found.tasks, found.running, found.held, found.contexts) == (2, 1, 1, 1)
        assert (found.keys, found.itself) == (0, False)
        assert Task.objects.count() == 4

    def test_counts_to_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world()
        monkeypatch.setattr(erasure, "COUNTED", 1)
        monkeypatch.setattr(privacy, "COUNTED", 1)
        found = survey(Principal(CANARY))
        assert (found.tasks, found.contexts, found.entries) == (1, 1, 1)
        out = io.StringIO()
        call_command("privacy", "erase", CANARY, stdout=out)
        assert "at least 1 tasks" in out.getvalue()
