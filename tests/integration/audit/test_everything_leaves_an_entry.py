"""The walk: every operation, every action of the admin and every command either changes nothing, or leaves its entry.

A new one that is in neither table fails here.
"""

from __future__ import annotations

import asyncio
import io
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client as Browser
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import Settings

import a2a_console.management.commands
import a2a_project.management.commands
import a2a_push.management.commands
import a2a_tasks.management.commands
from a2a_console.bulk.jobs import work
from a2a_project.operations import TABLE
from a2a_push.models import Delivery, DeliveryStatus, PushConfig
from a2a_tasks.access import api_keys, grants
from a2a_tasks.agents import Turn, registry
from a2a_tasks.agents.declaration import declare
from a2a_tasks.audit import Action
from a2a_tasks.models import (
    AgentVersion,
    AuditEntry,
    Budget,
    BudgetUse,
    BulkJob,
    Grant,
    Hold,
    Task,
    TenantRetention,
)
from a2a_tasks.protocol.requests import (
    CancelTaskRequest,
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    SendMessageRequest,
)
from a2a_tasks.protocol.values import Message, Part, Role
from a2a_tasks.store import cancel, legal_holds
from a2a_tasks.store.db import run_in_thread
from tests.integration.console.admin.test_waiting_admin import waits as waiting_task
from tests.integration.console.admin.test_waiting_admin import waits_for_a_secret
from tests.support.agents_under_test import playing
from tests.support.console.admin.rows import make_task
from tests.support.execution.host import Client, hosting
from tests.support.push.configs import config
from tests.support.push.rows import make_config, make_delivery
from tests.support.rows import rolled_back, rows
from tests.support.store.world import accepted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_audit_log")]

YES = {"confirmed": "yes"}


def told() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("actor", "action"))


def actions() -> set[str]:
    """What was done; refusals of tests before may be counted a moment later."""
    return {action for _, action in told() if not action.startswith("access.")}


# --- operations ---------------------------------------------------------------------------------


async def waits(turn: Turn) -> AsyncIterator[Any]:
    yield turn.working()
    await asyncio.Event().wait()


@pytest.fixture
async def alice(settings: Settings) -> AsyncIterator[Client]:
    """A client of an agent that waits, with a task."""
    settings.A2A_RUNS = "local"
    with playing(waits, push_notifications=True) as agent:
        async with hosting():
            yield Client(agent)


async def send(client: Client) -> None:
    await client.begin()


async def stream(client: Client) -> None:
    await (await client.stream()).close()


async def cancel_one(client: Client) -> None:
    await client.cancel((await client.begin()).id)


async def register(client: Client) -> None:
    task = (await client.begin()).id
    request = CreatePushConfigRequest(config=config(task_id=task))
    for _ in "create", "replace":
        await TABLE["CreateTaskPushNotificationConfig"](request, client.call())


async def unregister(client: Client) -> None:
    await register(client)
    task = (await run_in_thread(Task.objects.get)).public_id
    request = DeletePushConfigRequest(task_id=task, id=config().id)
    await TABLE["DeleteTaskPushNotificationConfig"](request, client.call())


READS = {
    "GetTask",
    "ListTasks",
    "SubscribeToTask",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "GetAgentCard",
    "GetExtendedAgentCard",
}
OPERATIONS: dict[str, tuple[Callable[[Client], Awaitable[None]], set[str]]] = {
    "SendMessage": (send, {"task.send"}),
    "SendStreamingMessage": (stream, {"task.send"}),
    "CancelTask": (cancel_one, {"task.send", "task.cancel"}),
    "CreateTaskPushNotificationConfig": (
        register,
        {"task.send", "webhook.create", "webhook.replace"},
    ),
    "DeleteTaskPushNotificationConfig": (
        unregister,
        {"task.send", "webhook.create", "webhook.replace", "webhook.delete"},
    ),
}


class TestOperations:
    def test_each_reads_or_leaves_an_entry(self) -> None:
        assert READS | set(OPERATIONS) == set(TABLE)

    @pytest.mark.parametrize("name", sorted(OPERATIONS))
    async def test_leaves_its_entry_by_its_caller(self, name: str, alice: Client) -> None:
        act, expected = OPERATIONS[name]
        await act(alice)
        assert await run_in_thread(actions) == expected
        assert {actor for actor, action in await run_in_thread(told) if action in expected} == {
            alice.caller.principal
        }

    async def test_a_webhook_that_comes_with_a_message_leaves_one(self, alice: Client) -> None:
        message = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),))
        request = SendMessageRequest(message=message, push_config=config(), return_immediately=True)
        await TABLE["SendMessage"](request, alice.call())
        assert await run_in_thread(actions) == {"task.send", "webhook.create"}

    async def test_the_request_is_named(self, alice: Client) -> None:
        call = replace(alice.call(), request_id="r-1")
        task = await TABLE["SendMessage"](alice.request("x", return_immediately=True), call)
        await TABLE["CancelTask"](CancelTaskRequest(id=task.id), call)
        named = await run_in_thread(
            lambda: set(AuditEntry.objects.values_list("request", flat=True))
        )
        assert named == {"r-1"}


# --- the admin ----------------------------------------------------------------------------------

#: What is known of the admins of the host's apps and of Django's users: actions of lists, and addresses beyond the stock ones.
PAGES = {
    "a2a_tasks.task": {
        *(
            "cancel_selected",
            "run_again_selected",
            "cancel",
            "again",
            "bulk",
            "export",
            "file",
            "json",
            "live",
            "news",
            "part",
            "views",
        )
    },
    "a2a_tasks.waiting": {"answer", "answer_many", "assign", "link"},
    "a2a_tasks.grant": {"delete_selected"},
    "axes.accessattempt": {"delete_selected"},
    "a2a_tasks.context": {"conversation"},
    "a2a_tasks.run": set(),
    "a2a_tasks.apikey": {"rotate_selected", "revoke_selected"},
    "a2a_tasks.agentswitch": {"agent", "set"},
    "a2a_tasks.auditentry": {"verify"},
    "a2a_tasks.worker": set(),
    "a2a_tasks.budget": {"delete_selected"},
    "a2a_tasks.bulkjob": {"progress", "results", "stop"},
    "a2a_tasks.budgetuse": {"decide"},
    "a2a_tasks.hold": {"release_selected"},
    "a2a_tasks.tenantretention": set(),
    "a2a_push.pushconfig": {"enable"},
    "a2a_push.delivery": {"replay_selected", "retry_selected", "replay", "retry"},
    "a2a_push.receiver": {"disable", "enable", "replay", "test"},
    "a2a_push.attempt": set(),
    "auth.user": {"delete_selected", "password_change"},
    "auth.group": {"delete_selected"},
}
STOCK = {"changelist", "add", "history", "delete", "change"}


def found_on(model_admin: Any) -> set[str]:
    """What can be done there beyond the stock pages."""
    request = RequestFactory().get("/")
    request.user = User(is_superuser=True, is_active=True, is_staff=True)
    label = model_admin.opts.label_lower.replace(".", "_")
    names = {url.name.removeprefix(f"{label}_") for url in model_admin.get_urls() if url.name}
    return (names - STOCK - {"auth_user_password_change"}) | set(model_admin.get_actions(request))


def selected(browser: Browser, model: str, action: str, *keys: int) -> None:
    said = {"action": action, "_selected_action": keys, **YES, "post": "yes"}
    browser.post(f"/admin/{model.replace('.', '/')}/", said)


def switched(browser: Browser, **said: Any) -> None:
    browser.post("/admin/a2a_tasks/agentswitch/agent/demo/set/", {**said, **YES})


def pressed(browser: Browser, model: str, key: int, button: str, **said: str) -> None:
    path = f"/admin/{model.replace('.', '/')}/{key}/{button}/"
    answer = browser.post(path, {**YES, **said})
    assert answer.status_code in {200, 302}, answer.content


def agreed(browser: Browser, deed: str, task: int) -> None:
    choice = f'{{"selection":{{}},"keys":[{task}]}}'
    browser.post(f"/admin/a2a_tasks/task/bulk/{deed}/", {"choice": choice})
    work()


def stopped(browser: Browser) -> None:
    choice = '{"selection":{},"keys":[1]}'
    browser.post("/admin/a2a_tasks/task/bulk/cancel/", {"choice": choice})
    pressed(browser, "a2a_tasks.bulkjob", BulkJob.objects.get().pk, "stop")


def ended() -> int:
    task = accepted().task
    cancel.cancel_by_key(task)
    return task


def granted() -> Grant:
    grants.grant("demo", "user:7", "use")
    return Grant.objects.get()


def spent_sum() -> BudgetUse:
    budget = Budget.objects.create(name="models", unit="cost", limit=5, action="ask")
    return BudgetUse.objects.create(
        budget=budget, since=timezone.now(), used=5, asked_at=timezone.now()
    )


def dead() -> Delivery:
    return make_delivery(make_config(make_task(), token="", lease_until=None), DeliveryStatus.DEAD)


def disabled() -> PushConfig:
    return make_config(make_task(), disabled_reason="gone")


def key_form(**changes: str) -> dict[str, str]:
    form = {"name": "robot", "tenant": "", "scopes": "", "expires_at_0": "", "expires_at_1": ""}
    return {**form, **changes}


def change_key(browser: Browser) -> None:
    row = api_keys.issue("robot").row
    browser.post(f"/admin/a2a_tasks/apikey/{row.pk}/change/", key_form(scopes="pay"))


def switch_off_and_on(browser: Browser) -> None:
    receiver = disabled().receiver_id
    pressed(browser, "a2a_push.receiver", receiver, "disable", reason="x")
    pressed(browser, "a2a_push.receiver", receiver, "enable")


def sent_again_in_a_span(browser: Browser) -> None:
    span = {"since": "2020-01-01T00:00", "until": "2100-01-01T00:00"}
    pressed(browser, "a2a_push.receiver", dead().receiver_id, "replay", **span)


def waiting() -> Delivery:
    return make_delivery(make_config(make_task()))


def take_and_release(browser: Browser) -> None:
    task = waiting_task().pk
    for wish in ("take", "release"):
        browser.post("/admin/a2a_tasks/waiting/assign/", {"do": wish, "task": task})


def change_user(browser: Browser) -> None:
    bob = User.objects.create_user("bob")
    browser.post(
        f"/admin/auth/user/{bob.pk}/password/",
        {"password1": "canary-1", "password2": "canary-1", "usable_password": "true"},
    )
    bob.groups.add(Group.objects.create(name="ops"))
    Group.objects.get().permissions.add(Permission.objects.all()[0])
    Group.objects.get().save()


def lay_and_release(browser: Browser) -> None:
    said = {"kind": "tenant", "name": "acme", "reason": "a lawsuit"}
    browser.post("/admin/a2a_tasks/hold/add/", said)
    selected(browser, "a2a_tasks.hold", "release_selected", Hold.objects.get().pk)
    assert Hold.objects.get().released_at is not None


def keep_a_tenant(browser: Browser) -> None:
    page = "/admin/a2a_tasks/tenantretention/"
    browser.post(page + "add/", {"tenant": "acme", "days": "7"})
    row = TenantRetention.objects.get()
    browser.post(f"{page}{row.pk}/change/", {"days": "8"})
    browser.post(f"{page}{row.pk}/delete/", {"post": "yes"})
    assert not TenantRetention.objects.exists()
    assert AuditEntry.objects.filter(action="retention.set").count() == 3


WAYS: dict[str, tuple[Callable[[Browser], object], set[str]]] = {
    "an agent granted": (
        lambda browser: browser.post(
            "/admin/a2a_tasks/grant/add/", {"agent": "demo", "grantee": "user:7", "right": "use"}
        ),
        {"grant.add"},
    ),
    "grants taken away": (
        lambda browser: selected(browser, "a2a_tasks.grant", "delete_selected", granted().pk),
        {"grant.remove"},
    ),
    "a budget made": (
        lambda browser: browser.post(
            "/admin/a2a_tasks/budget/add/",
            {
                "name": "models",
                "unit": "cost",
                "limit": "5",
                "currency": "USD",
                "share": "all",
                "window": "day",
                "action": "ask",
                "enabled": "on",
            },
        ),
        {"budget.create"},
    ),
    "budgets deleted": (
        lambda browser: selected(
            browser, "a2a_tasks.budget", "delete_selected", spent_sum().budget_id
        ),
        {"budget.delete"},
    ),
    "more of a budget allowed": (
        lambda browser: pressed(
            browser, "a2a_tasks.budgetuse", spent_sum().pk, "decide", do="allow", amount="5"
        ),
        {"budget.allow"},
    ),
    "more of a budget refused": (
        lambda browser: pressed(
            browser, "a2a_tasks.budgetuse", spent_sum().pk, "decide", do="refuse"
        ),
        {"budget.refuse"},
    ),
    "tasks cancelled": (
        lambda browser: agreed(browser, "cancel", accepted().task),
        {"bulk.begin", "task.cancel"},
    ),
    "a job stopped": (stopped, {"bulk.stop"}),
    "a view saved": (
        lambda browser: browser.post("/admin/a2a_tasks/task/views/", {"name": "x"}),
        {"view.save"},
    ),
    "tasks run again": (
        lambda browser: agreed(browser, "run-again", ended()),
        {"task.run_again", "task.send"},
    ),
    "a task run again": (
        lambda browser: pressed(browser, "a2a_tasks.task", ended(), "run-again"),
        {"task.run_again"},
    ),
    "tasks exported": (
        lambda browser: browser.post("/admin/a2a_tasks/task/export.csv"),
        {"task.export"},
    ),
    "a task cancelled": (
        lambda browser: pressed(browser, "a2a_tasks.task", accepted().task, "cancel"),
        {"task.cancel"},
    ),
    "a task answered": (
        lambda browser: pressed(
            browser, "a2a_tasks.waiting", waiting_task().pk, "answer", text="x", event="2"
        ),
        {"task.answer"},
    ),
    "a task taken and released": (take_and_release, {"task.assign", "task.release"}),
    "a link made": (
        lambda browser: pressed(browser, "a2a_tasks.waiting", waits_for_a_secret().pk, "link"),
        {"secret.link"},
    ),
    "a key made": (
        lambda browser: browser.post("/admin/a2a_tasks/apikey/add/", key_form()),
        {"key.create"},
    ),
    "a key changed": (change_key, {"key.change"}),
    "keys rotated": (
        lambda browser: selected(
            browser, "a2a_tasks.apikey", "rotate_selected", api_keys.issue("robot").row.pk
        ),
        {"key.rotate"},
    ),
    "keys revoked": (
        lambda browser: selected(
            browser, "a2a_tasks.apikey", "revoke_selected", api_keys.issue("robot").row.pk
        ),
        {"key.revoke"},
    ),
    "an agent drained": (lambda browser: switched(browser, do="drain"), {"agent.drain"}),
    "an agent switched off": (lambda browser: switched(browser, do="disable"), {"agent.disable"}),
    "an agent limited": (lambda browser: switched(browser, do="limit", most="3"), {"agent.limit"}),
    "an agent moved": (
        lambda browser: switched(browser, do="queue", queue="night"),
        {"agent.queue"},
    ),
    "a webhook enabled": (
        lambda browser: pressed(browser, "a2a_push.pushconfig", disabled().pk, "enable"),
        {"webhook.enable"},
    ),
    "deliveries sent again": (
        lambda browser: selected(browser, "a2a_push.delivery", "replay_selected", dead().pk),
        {"webhook.replay"},
    ),
    "deliveries tried": (
        lambda browser: selected(browser, "a2a_push.delivery", "retry_selected", waiting().pk),
        {"webhook.replay"},
    ),
    "a delivery sent again": (
        lambda browser: pressed(browser, "a2a_push.delivery", dead().pk, "replay"),
        {"webhook.replay"},
    ),
    "a delivery tried": (
        lambda browser: pressed(browser, "a2a_push.delivery", waiting().pk, "retry"),
        {"webhook.replay"},
    ),
    "a receiver tested": (
        lambda browser: pressed(browser, "a2a_push.receiver", disabled().receiver_id, "test"),
        {"receiver.test"},
    ),
    "a receiver switched": (switch_off_and_on, {"receiver.disable", "receiver.enable"}),
    "a span sent again": (sent_again_in_a_span, {"webhook.replay"}),
    "a user changed": (change_user, {"user.change"}),
    "users deleted": (
        lambda browser: selected(
            browser, "auth.user", "delete_selected", User.objects.create_user("bob").pk
        ),
        {"user.delete"},
    ),
    "a hold laid and released": (lay_and_release, {"hold.set", "hold.release"}),
    "days of a tenant": (keep_a_tenant, {"retention.set"}),
    "groups deleted": (
        lambda browser: selected(
            browser, "auth.group", "delete_selected", Group.objects.create(name="x").pk
        ),
        {"group.delete"},
    ),
}


class TestTheAdmin:
    def test_everything_on_it_is_known_here(self) -> None:
        found = {
            model._meta.label_lower: found_on(model_admin)
            for model, model_admin in admin.site._registry.items()
        }
        assert found == PAGES

    @rows("way", sorted(WAYS), within=rolled_back)
    def test_leaves_an_entry_by_who_is_signed_in(self, way: str, admin_client: Browser) -> None:
        act, expected = WAYS[way]
        admin_client.force_login(admin := User.objects.get(username="admin"))
        act(admin_client)
        staff = f"staff:{admin.pk}"
        assert expected <= {action for actor, action in told() if actor == staff}


# --- commands -----------------------------------------------------------------------------------


def run(*words: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def purge() -> None:
    accepted()
    cancel.cancel_by_key(Task.objects.get().pk)
    Task.objects.update(status_at=Task.objects.get().status_at - timedelta(days=9))
    run("purge", "--older-than", "1")


def purge_logs() -> None:
    accepted()
    cancel.cancel_by_key(Task.objects.get().pk)
    Task.objects.update(status_at=Task.objects.get().status_at - timedelta(days=9))
    run("purge", "--events-older-than", "1")


def erase() -> None:
    accepted()
    run("privacy", "erase", "user:alice", "--yes")


def release() -> None:
    run("privacy", "release", str(legal_holds.lay(legal_holds.HoldKind.TASK, "t", "x").pk))


def replay() -> None:
    run("webhooks", "replay", dead().webhook_id)


def reseal() -> None:
    disabled()
    run("reseal")


#: Commands that change nothing of the host's state.
LOOKS = {
    "restart",
    "runserver",
    "serve",
    "serve_grpc",
    "up",
    "startagent",
    "verify_card",
    "webhook_keys",
}


def announce(path: Path) -> None:
    """Announce version 7 of the demo agent from a manifest."""
    agent = registry.find_own("demo")
    assert agent is not None
    made = msgspec.structs.replace(declare(agent), version="7")
    manifest = {"format": 1, "host": "0.1.0", "environment": "adk", "agents": [made]}
    file = path / "adk.json"
    file.write_bytes(msgspec.json.encode(manifest))
    run("agent_versions", "announce", str(file))


def forget(path: Path) -> None:
    """Forget version 7, which was announced long ago."""
    announce(path)
    AgentVersion.objects.update(announced_at=timezone.now() - timedelta(hours=1))
    run("agent_versions", "forget", "demo", "7")


COMMANDS: dict[str, dict[str, tuple[Callable[[Path], object], set[str]]]] = {
    "a2a": {
        "cancel": (lambda _: run("a2a", "cancel", f"#{accepted().task}", "--yes"), {"task.cancel"})
    },
    "agent_versions": {
        "announce": (announce, {"agent.announce"}),
        "serve": (lambda _: run("agent_versions", "serve", "demo", "1.0.0"), {"agent.version"}),
        "canary": (
            lambda _: run("agent_versions", "canary", "demo", "1.0.0", "10"),
            {"agent.version"},
        ),
        "rollback": (
            lambda _: (
                run("agent_versions", "canary", "demo", "1.0.0", "10"),
                run("agent_versions", "rollback", "demo"),
            ),
            {"agent.version"},
        ),
        "move": (lambda _: run("agent_versions", "move", "demo", "7", "1.0.0"), {"agent.move"}),
        "forget": (forget, {"agent.forget"}),
    },
    "grants": {
        "add": (lambda _: run("grants", "add", "demo", "user:7"), {"grant.add"}),
        "remove": (
            lambda _: (granted(), run("grants", "remove", "demo", "user:7")),
            {"grant.remove"},
        ),
    },
    "api_keys": {
        "create": (lambda _: run("api_keys", "create", "x"), {"key.create"}),
        "rotate": (
            lambda _: run("api_keys", "rotate", api_keys.issue("x").row.prefix),
            {"key.rotate"},
        ),
        "revoke": (
            lambda _: run("api_keys", "revoke", api_keys.issue("x").row.prefix),
            {"key.revoke"},
        ),
    },
    "audit": {"export": (lambda _: run("audit", "export"), {"audit.export"})},
    "card_keys": {
        "make": (lambda path: run("card_keys", "make", str(path / "keys")), {"card_keys.change"})
    },
    "privacy": {
        "export": (
            lambda path: run("privacy", "export", "user:alice", str(path / "alice.zip")),
            {"privacy.export"},
        ),
        "erase": (lambda _: erase(), {"privacy.erase", "task.cancel", "task.purge"}),
        "hold": (lambda _: run("privacy", "hold", "task", "t", "--reason", "x"), {"hold.set"}),
        "release": (lambda _: release(), {"hold.release"}),
        "retention": (lambda _: run("privacy", "retention", "acme", "7"), {"retention.set"}),
    },
    "purge": {
        "tasks": (lambda _: purge(), {"task.purge"}),
        "logs": (lambda _: purge_logs(), {"log.purge"}),
    },
    "reseal": {"": (lambda _: reseal(), {"secrets.reseal"})},
    "webhooks": {"replay": (lambda _: replay(), {"webhook.replay"})},
}
EACH = [(command, word) for command, words in COMMANDS.items() for word in words]


class TestCommands:
    def test_every_one_is_known_here(self) -> None:
        rooms = (
            a2a_console.management.commands,
            a2a_project.management.commands,
            a2a_push.management.commands,
            a2a_tasks.management.commands,
        )
        found = {name for room in rooms for _, name, _ in pkgutil.iter_modules(room.__path__)}
        assert found == LOOKS | set(COMMANDS)

    @rows(("command", "word"), EACH, within=rolled_back)
    def test_leaves_an_entry(self, command: str, word: str, tmp_path: Path) -> None:
        act, expected = COMMANDS[command][word]
        act(tmp_path)
        assert expected <= actions()
        assert {actor for actor, action in told() if action in expected} == {"system:host"}


# --- the rest -----------------------------------------------------------------------------------


class TestTheTableOfActions:
    def test_is_complete_in_every_row(self) -> None:
        assert all(action.about and "." in action.value for action in Action)
        assert max(len(action.value) for action in Action) <= 32

    def test_has_no_row_that_nobody_writes(self) -> None:
        code = [path.read_text() for app in apps.get_app_configs() for path in ours(app.path)]
        unwritten = [a.name for a in Action if not any(f"Action.{a.name}" in text for text in code)]
        assert unwritten == []


def ours(path: str) -> Iterator[Path]:
    if Path(path).name in {"a2a_tasks", "a2a_push", "a2a_console"}:
        yield from Path(path).rglob("*.py")
