"""Staff sees the rows of the tenants it is for, on every page of every table; what permissions allow, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from a2a_console.admin.widgets.staff import HostWideAdmin, TenantAdmin
from a2a_console.bulk.jobs import work
from a2a_push.models import Attempt, Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_tasks.access.api_keys import issue
from a2a_tasks.audit import Action
from a2a_tasks.models import (
    ApiKey,
    AuditEntry,
    BulkJob,
    Context,
    Grant,
    Hold,
    Run,
    RunStatus,
    Task,
    TenantRetention,
    Waiting,
)
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit
from tests.integration.console.admin.test_task_admin import kept
from tests.support.console.admin.rows import add_run, make_task
from tests.support.push.rows import add_attempt, make_config, make_delivery, make_receiver
from tests.support.rows import rolled_back, rows
from tests.support.thorough import THOROUGH

pytestmark = pytest.mark.django_db

OURS = ("a2a_tasks", "a2a_push")
TABLES: list[type[Model]] = [
    model
    for app in OURS
    for model in apps.get_app_config(app).get_models()
    if admin.site.is_registered(model)
    and model not in {Waiting, BulkJob}
    and not isinstance(admin.site.get_model_admin(model), HostWideAdmin)
]
#: Tasks once more, with a list and buttons of its own: tests/integration/console/admin/test_waiting_admin.py.
QUEUE = {"a2a_tasks.waiting"}
#: Registered tables that belong to no tenant.
OTHERS = {
    "a2a_tasks.bulkjob",  # of users: tests/integration/console/admin/test_bulk.py
    "a2a_tasks.agentswitch",
    "a2a_tasks.worker",
    "a2a_tasks.budget",
    "a2a_tasks.budgetuse",
    "a2a_tasks.grant",
    "a2a_tasks.hold",
    "a2a_tasks.tenantretention",
    "auth.user",
    "auth.group",
    "axes.accessattempt",
}
#: What a row is found by.
SOUGHT: dict[type[Model], Callable[[Any], str]] = {
    ApiKey: lambda row: row.prefix,
    AuditEntry: lambda row: row.object,
    Attempt: lambda row: row.delivery.webhook_id,
    Context: lambda row: row.public_id,
    Delivery: lambda row: row.webhook_id,
    PushConfig: lambda row: row.public_id,
    Receiver: lambda row: row.address,
    Run: lambda row: row.task.public_id,
    Task: lambda row: row.public_id,
}


@dataclass
class Rows:
    """One row of each table, of one tenant."""

    of: dict[type[Model], Any]


def rows_of(tenant: str) -> Rows:
    """Make them."""
    name = tenant.replace("/", "-") or "none"
    task = make_task(f"task-{name}", context_id=f"context-{name}")
    task.tenant = task.context.tenant = tenant
    task.save()
    task.context.save()
    receiver = make_receiver(f"https://{name}.example/a2a", tenant=tenant, well=False)
    config = make_config(task, f"config-{name}", receiver=receiver)
    delivery = make_delivery(config, DeliveryStatus.DEAD, webhook_id=f"msg-{name}")
    made = [task, task.context, add_run(task, RunStatus.FAILED), receiver, config, delivery]
    key = issue(name).row
    key.tenant = tenant
    key.save()
    audit.note(Action.TASK_SEND, f"sent-{name}", tenant=tenant)
    made += [add_attempt(delivery), key, AuditEntry.objects.latest("pk")]
    return Rows({type(row): row for row in made})


def member(*tenants: str, permissions: bool = True) -> Client:
    """Alice, staff, with every permission on the host's tables, for these tenants."""
    alice = User.objects.create_user("alice", is_staff=True)
    alice.groups.set([Group.objects.create(name=f"tenant:{tenant}") for tenant in tenants])
    may = Permission.objects.filter(content_type__app_label__in=OURS)
    alice.user_permissions.set(may.exclude(codename="see_all_tenants") if permissions else [])
    client = Client()
    client.force_login(alice)
    return client


def page(model: type[Model], name: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def listed(client: Client, model: type[Model], **query: str) -> list[Any]:
    """The rows that a list shows; it counts no others."""
    answer = client.get(page(model, "changelist"), query)
    assert answer.status_code == 200
    shown = answer.context["cl"]
    found = list(shown.result_list)
    assert shown.result_count == len(found)
    # Making rows is in the audit log, too.
    return [row for row in found if getattr(row, "action", Action.TASK_SEND) == Action.TASK_SEND]


def test_every_table_is_of_tenants_or_named_here_as_one_that_is_not() -> None:
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert registered == {model._meta.label_lower for model in TABLES} | OTHERS | QUEUE
    assert set(SOUGHT) == set(TABLES)
    for model in TABLES:
        pages = admin.site.get_model_admin(model)
        assert isinstance(pages, TenantAdmin), f"{pages} is not a TenantAdmin"
        assert type(pages).get_object is TenantAdmin.get_object


def test_whom_the_log_names_elsewhere_too_is_found_as_who_acted() -> None:
    audit.note(Action.TASK_SEND, "task-1", tenant="acme", actor="key:k3vbd7yq2mza")
    audit.note(Action.GRANT_ADD, "key:k3vbd7yq2mza")
    found = listed(member("acme"), AuditEntry, q="key:k3vbd7yq2mza")
    assert [row.object for row in found] == ["task-1"]


#: What one table's row of the test does is undone before the next one's.
of_every_table = rows("model", TABLES, ids=lambda model: model._meta.label, within=rolled_back)


@pytest.fixture
def world(db: None) -> dict[str, Rows]:
    """Rows of several tenants, and of none."""
    return {tenant: rows_of(tenant) for tenant in ("", "acme", "acme/blue", "acme2", "globex")}


@pytest.fixture
def acmes(world: dict[str, Rows]) -> Client:
    return member("acme")


class TestOfEveryTable:
    @of_every_table
    def test_staff_lists_its_tenants_alone(
        self, model: type[Model], world: dict[str, Rows], acmes: Client
    ) -> None:
        ours, below, theirs = world["acme"], world["acme/blue"], world["acme2"]
        client = acmes
        assert {row.pk for row in listed(client, model)} == {ours.of[model].pk, below.of[model].pk}
        sought = SOUGHT[model]
        assert [row.pk for row in listed(client, model, q=sought(below.of[model]))] == [
            below.of[model].pk
        ]
        assert listed(client, model, q=sought(theirs.of[model])) == []

    @of_every_table
    def test_anothers_row_is_not_there(
        self, model: type[Model], world: dict[str, Rows], acmes: Client
    ) -> None:
        theirs, client = world["globex"].of[model], acmes
        some = ("change", ("history", "delete")[TABLES.index(model) % 2])
        for name in ("change", "history", "delete") if THOROUGH else some:
            answer = client.get(page(model, name, theirs.pk))
            missing = client.get(page(model, name, theirs.pk + 1000))
            assert answer.status_code == missing.status_code == 404
            assert answer.content == missing.content
            assert client.post(page(model, name, theirs.pk)).status_code in {403, 404}

    @of_every_table
    def test_anothers_row_is_not_acted_on(
        self, model: type[Model], world: dict[str, Rows], acmes: Client
    ) -> None:
        theirs, client = world["globex"].of[model], acmes
        before = model._default_manager.filter(pk=theirs.pk).values().get()
        for action in admin.site.get_model_admin(model).actions or ():
            said = {"action": action, "_selected_action": [theirs.pk], "confirmed": "yes"}
            assert client.post(page(model, "changelist"), said).status_code in {200, 302}
        for button in BUTTONS.get(model, ()):
            url = page(model, button, theirs.pk)
            assert client.post(url, {"confirmed": "yes"}).status_code == 404
        for view in VIEWS.get(model, ()):
            assert client.get(page(model, view, theirs.pk)).status_code == 404
        assert model._default_manager.filter(pk=theirs.pk).values().get() == before

    @of_every_table
    def test_staff_for_no_tenant_sees_rows_without_one(
        self, model: type[Model], world: dict[str, Rows]
    ) -> None:
        assert [row.pk for row in listed(member(), model)] == [world[""].of[model].pk]

    @of_every_table
    def test_staff_for_all_tenants_sees_all(
        self, model: type[Model], world: dict[str, Rows]
    ) -> None:
        client = member()
        alice = User.objects.get(username="alice")
        alice.user_permissions.add(Permission.objects.get(codename="see_all_tenants"))
        assert {row.pk for row in listed(client, model)} == {
            one.of[model].pk for one in world.values()
        }

    @of_every_table
    def test_membership_gives_no_permission(
        self, model: type[Model], world: dict[str, Rows]
    ) -> None:
        mine = world["acme"].of[model]
        client = member("acme", permissions=False)
        assert client.get(page(model, "changelist")).status_code == 403
        assert client.get(page(model, "change", mine.pk)).status_code == 403
        for button in BUTTONS.get(model, ()):
            url = page(model, button, mine.pk)
            assert client.post(url, {"confirmed": "yes"}).status_code == 403
        for view in VIEWS.get(model, ()):
            assert client.get(page(model, view, mine.pk)).status_code in {403, 404}


#: What is looked at alone, by whomever.
KEPT: list[type[Model]] = [
    *(Task, Context, Run, AuditEntry),
    *(Attempt, Delivery, PushConfig, Receiver),
]


@rows("model", KEPT, ids=lambda model: model._meta.label, within=rolled_back)
def test_nobody_adds_changes_or_deletes_what_the_host_keeps(
    model: type[Model], admin_client: Client
) -> None:
    row = rows_of("").of[model]
    before = model._default_manager.filter(pk=row.pk).values().get()
    assert admin_client.get(page(model, "add")).status_code == 403
    for url, said in (
        (page(model, "add"), {}),
        (page(model, "change", row.pk), {"owner": "bob", "status": "dead", "actor": "x"}),
        (page(model, "delete", row.pk), {"post": "yes"}),
    ):
        assert admin_client.post(url, said).status_code == 403
    said = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
    admin_client.post(page(model, "changelist"), said)
    assert model._default_manager.filter(pk=row.pk).values().get() == before


BUTTONS: dict[type[Model], tuple[str, ...]] = {
    Task: ("cancel", "again"),
    Delivery: ("replay", "retry"),
    PushConfig: ("enable",),
    Receiver: ("disable", "enable", "replay", "test"),
}


#: Pages of a row beside the stock ones, and pieces of them.
VIEWS: dict[type[Model], tuple[str, ...]] = {
    Task: ("json",),
    Context: ("conversation",),
}
#: Pages that are asked for by more than the row's key.
FILE, PART = "a2a_tasks_task_file", "a2a_tasks_task_part"
BY_MORE = {
    *(FILE, PART),
    *(f"a2a_tasks_task_{page}" for page in ("bulk", "export", "live", "news", "views")),
}
#: Of no row: who may verify sees every tenant (test_audit_admin.py).
VERIFY = "a2a_tasks_auditentry_verify"


def test_files_are_there_for_staff_of_their_tenant_alone() -> None:
    client = member("acme")
    for tenant, status in (("acme", 200), ("acme/blue", 200), ("globex", 404)):
        task = rows_of(tenant).of[Task]
        answer = client.get(reverse(f"admin:{FILE}", args=[task.pk, kept(task, b"x")]))
        answer.getvalue()  # to its end, which closes it
        assert answer.status_code == status


def test_parts_are_there_for_staff_of_their_tenant_alone() -> None:
    client = member("acme")
    for tenant, status in (("acme", 200), ("acme/blue", 200), ("globex", 404)):
        task = rows_of(tenant).of[Task]
        answer = client.get(reverse(f"admin:{PART}", args=[task.pk, "event", 1, 0]))
        answer.getvalue()  # to its end, which closes it
        assert answer.status_code == status


def test_news_are_told_to_staff_of_their_tenant_alone() -> None:
    client = member("acme")
    for tenant, status in (("acme", 200), ("globex", 204)):
        task = rows_of(tenant).of[Task]
        answer = client.get(reverse("admin:a2a_tasks_task_news"), {"top": task.pk - 1})
        assert answer.status_code == status


@pytest.mark.parametrize(("deed", "state"), [("cancel", "SUBMITTED"), ("run-again", "FAILED")])
def test_anothers_tasks_are_left_alone_whatever_keys_a_form_has(deed: str, state: str) -> None:
    theirs = rows_of("globex").of[Task]
    Task.objects.update(state=TaskState[state])
    said = {"choice": f'{{"selection":{{}},"keys":[{theirs.pk},-1]}}'}
    answer = member("acme").post(reverse("admin:a2a_tasks_task_bulk", args=[deed]), said)
    assert answer.status_code == 302
    work()
    assert list(Task.objects.values_list("pk", "state")) == [(theirs.pk, TaskState[state])]


@pytest.mark.parametrize("permissions", [(), ("view_task",)])
def test_only_who_may_does_something_to_many(permissions: tuple[str, ...]) -> None:
    theirs = rows_of("").of[Task]
    client = member(permissions=False)
    held = Permission.objects.filter(codename__in=permissions)
    User.objects.get(username="alice").user_permissions.set(held)
    for deed in ("cancel", "run-again"):
        url = reverse("admin:a2a_tasks_task_bulk", args=[deed])
        assert client.post(url, {"keys": str(theirs.pk)}).status_code == 403
        assert client.get(url).status_code == 405


def test_every_button_is_tried() -> None:
    named = (
        BY_MORE
        | {VERIFY}
        | {
            f"{model._meta.app_label}_{model._meta.model_name}_{verb}"
            for pages in (BUTTONS, VIEWS)
            for model in pages
            for verb in pages[model]
        }
    )
    stock = ("_changelist", "_add", "_history", "_delete", "_change")
    urls = [url.name or "" for model in TABLES for url in admin.site.get_model_admin(model).urls]
    assert {name for name in urls if name and not name.endswith(stock)} == named


class TestOfWhatPagesSayBeside:
    def test_filters_offer_no_receiver_and_no_webhook_of_another(self) -> None:
        rows_of("acme")
        theirs = rows_of("globex")
        receiver, config = theirs.of[Receiver], theirs.of[PushConfig]
        receiver.disabled_at = receiver.created_at
        receiver.save()
        client = member("acme")
        for query, status in (
            ({}, 200),
            ({"receiver": receiver.pk}, 400),
            ({"config": config.pk}, 400),
        ):
            answer = client.get(page(Delivery, "changelist"), query)
            assert answer.status_code == status
            assert b"globex" not in answer.content

    def test_completion_offers_no_row_of_another(self) -> None:
        theirs = rows_of("globex").of[Receiver]
        field = {"app_label": "a2a_push", "model_name": "delivery", "field_name": "receiver"}
        answer = member("acme").get("/admin/autocomplete/", {**field, "term": theirs.address})
        assert answer.json()["results"] == []

    def test_a_page_shows_of_other_tables_what_may_be_viewed(self) -> None:
        made = rows_of("")
        task, run = made.of[Task], made.of[Run]
        run.error = "trace-5c1e"
        run.save()
        client = member(permissions=False)
        alice = User.objects.get(username="alice")
        for codename, there in (("view_task", False), ("view_run", True)):
            alice.user_permissions.add(Permission.objects.get(codename=codename))
            answer = client.get(page(Task, "change", task.pk))
            assert (b"trace-5c1e" in answer.content) is there
        alice.user_permissions.set(Permission.objects.filter(codename="view_context"))
        answer = client.get(page(Context, "change", task.context_id))
        assert answer.status_code == 200
        assert task.public_id.encode() not in answer.content

    @pytest.mark.parametrize(("tenant", "there"), [("acme", False), ("", True)])
    def test_traces_are_not_for_the_staff_of_a_tenant(self, tenant: str, there: bool) -> None:
        made = rows_of(tenant)
        task, run = made.of[Task], made.of[Run]
        run.error = "trace-5c1e"
        run.save()
        client = member(*[tenant] if tenant else [])
        for one in (page(Task, "change", task.pk), page(Run, "change", run.pk)):
            answer = client.get(one)
            assert answer.status_code == 200
            assert (b"trace-5c1e" in answer.content) is there


class TestOfKeys:
    def test_staff_makes_them_for_its_tenants_alone(self) -> None:
        client = member("acme")
        form = {"name": "robot", "scopes": "", "expires_at_0": "", "expires_at_1": ""}
        for tenant, made in (("globex", 0), ("", 0), ("acme", 1)):
            answer = client.post(page(ApiKey, "add"), {**form, "tenant": tenant})
            assert answer.status_code == 200
            assert ApiKey.objects.filter(tenant=tenant).count() == made


@rows(
    "path",
    ["/admin/auth/user/", "/admin/auth/group/", "/admin/axes/accessattempt/"],
    within=rolled_back,
)
def test_people_and_passwords_are_not_for_staff_of_a_tenant(path: str) -> None:
    client = member("acme")
    User.objects.get(username="alice").user_permissions.set(
        Permission.objects.exclude(codename="see_all_tenants")
    )
    assert client.get(path).status_code == 403
    assert client.get(path + "add/").status_code == 403


def test_superusers_look_after_people(admin_client: Client) -> None:
    for path in ("/admin/auth/user/", "/admin/auth/group/", "/admin/axes/accessattempt/"):
        assert admin_client.get(path).status_code == 200


def test_what_is_for_all_tenants_is_for_staff_that_sees_all_of_them() -> None:
    pages = [page(model, "changelist") for model in (Grant, Hold, TenantRetention)]
    some = member("acme")
    assert {some.get(url).status_code for url in pages} == {403}
    User.objects.all().delete()
    everybody = member()
    may_all = Permission.objects.get(codename="see_all_tenants")
    User.objects.get().user_permissions.add(may_all)
    assert {everybody.get(url).status_code for url in pages} == {200}
