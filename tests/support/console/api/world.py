"""What there is to be asked of: a tenant with one of everything, and who asks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_tasks.access.api_keys import issue
from a2a_tasks.access.grants import grant
from a2a_tasks.models import (
    ApiKey,
    Assignment,
    Budget,
    BudgetAction,
    BudgetUnit,
    BudgetUse,
    Context,
    HandedSecret,
    Run,
    RunStatus,
    Task,
)
from a2a_tasks.store import budgets, run_lines, workers
from a2a_tasks.store.run_lines import RunLogLine
from a2a_tasks.store.workers import Beat, WorkerKind
from tests.support.console.admin.rows import add_artifact, add_run, make_task
from tests.support.push.rows import add_attempt, make_config, make_delivery, make_receiver

__all__ = ["API", "Answer", "World", "asked", "key_of", "operates", "person", "populated", "wait"]

API = "/api/v1"
ROUTE = re.compile(r"\{\w+\}")


@dataclass(frozen=True)
class World:
    """One of everything, of one tenant."""

    task: Task
    run: Run
    config: PushConfig
    #: Dead, and pending.
    delivery: Delivery
    waiting: Delivery
    key: ApiKey
    #: A sum about which operators are asked.
    use: BudgetUse

    @property
    def receiver(self) -> Receiver:
        """Where the webhook leads."""
        return self.config.receiver

    def at(self, path: str) -> str:
        """The address of a route in this world."""
        found: dict[str, Any] = {
            "/agents": "demo",
            "/tasks": self.task.pk,
            "/contexts": self.task.context_id,
            "/runs": self.run.pk,
            "/keys": self.key.prefix,
            "/budgets": self.use.budget_id,
            "/budget-uses": self.use.pk,
            "/webhooks/configs": self.config.pk,
            "/webhooks/deliveries": self.delivery.pk,
            "/webhooks/receivers": self.receiver.pk,
        }
        if path.endswith("try-now"):
            found["/webhooks/deliveries"] = self.waiting.pk
        noun = path.removeprefix(API).partition("/{")[0]
        return ROUTE.sub(str(found.get(noun)), path)


def populated(tenant: str = "", name: str = "one") -> World:
    """Make them; the webhook and the receiver are disabled, so that they can be enabled."""
    task = make_task(f"task-{name}", context_id=f"context-{name}")
    add_artifact(task, "page", "one ", "two")
    Task.objects.filter(pk=task.pk).update(tenant=tenant, metadata='{"a":1}')
    Context.objects.filter(pk=task.context_id).update(tenant=tenant)
    task.refresh_from_db()
    run = add_run(task, RunStatus.FAILED, worker="worker-1", error="Traceback: boom")
    run_lines.write([RunLogLine(run.pk, 1, run.created_at, 20, "agent", f"said of {name}")])
    workers.beat(
        Beat(name="here:1", kind=WorkerKind.WORKER, host="here", pid=1, started_at=run.created_at)
    )
    receiver = make_receiver(f"https://hooks.example.com/{name}", tenant=tenant)
    config = make_config(task, f"config-{name}", receiver=receiver, disabled_reason="gone")
    dead = make_delivery(config, DeliveryStatus.DEAD, reason="answered 500")
    add_attempt(dead)
    waiting = make_delivery(config)
    key = issue(f"key of {name}", tenant=tenant.partition("/")[0]).row
    budget = Budget.objects.create(
        name=f"budget of {name}", unit=BudgetUnit.COST, limit=5, action=BudgetAction.ASK
    )
    use = BudgetUse.objects.create(
        budget=budget, since=budgets.BEGINNING, used=5, asked_at=timezone.now()
    )
    return World(task, run, config, dead, waiting, key, use)


def wait(world: World) -> None:
    """Have its task wait for a secret, with somebody who sees to it, and who may answer."""
    Task.objects.filter(pk=world.task.pk).update(state="TASK_STATE_AUTH_REQUIRED")
    HandedSecret.objects.create(
        task=world.task, names='["token"]', asked_in=1, expires_at=timezone.now()
    )
    carol, _ = User.objects.get_or_create(username="carol", is_staff=True, is_superuser=True)
    Assignment.objects.create(task=world.task, user=carol)


@dataclass(frozen=True)
class Answer:
    """What came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed; of an object a line, the objects as `items`."""
        if self.headers["content-type"].startswith("application/jsonl"):
            return {"items": [json.loads(line) for line in self.body.splitlines()]}
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem; anything else fails."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        assert self.json["status"] == self.status
        return str(self.json["code"])


def asked(
    who: Client | str | None,
    path: str,
    body: Any = None,
    *,
    post: bool = False,
    verb: str = "",
) -> Answer:
    """Ask as a session of the admin, with a key, or as nobody; with a body it is a POST unless said otherwise."""
    client = who if isinstance(who, Client) else Client(raise_request_exception=False)
    headers = {"X-API-Key": who} if isinstance(who, str) else {}
    url = path if path.startswith("/api") else API + path
    verb = verb or ("post" if post or body is not None else "get")
    if verb == "get":
        answer = client.get(url, headers=headers)
    else:
        text = "" if body is None else json.dumps(body)
        send = getattr(client, verb)
        answer = send(url, text, content_type="application/json", headers=headers)
    lower = {name.lower(): value for name, value in answer.headers.items()}
    return Answer(answer.status_code, lower, _body(answer))


def _body(answer: Any) -> bytes:
    """All of it; an export is sent by servers that wait without a thread."""

    async def all_of() -> bytes:
        return b"".join([chunk async for chunk in answer.streaming_content])

    if answer.streaming and answer.is_async:
        return async_to_sync(all_of)()
    return b"".join(answer)


def key_of(*scopes: str, tenant: str = "") -> str:
    """A key with these scopes."""
    return issue("test", scopes=scopes, tenant=tenant).key


def operates(agent: str, *scopes: str, tenant: str = "") -> str:
    """A key with these scopes, to which an agent was granted."""
    issued = issue("test", scopes=scopes, tenant=tenant)
    grant(agent, f"key:{issued.row.prefix}", "operate")
    return issued.key


def person(
    *permissions: str, name: str = "bob", staff: bool = True, tenants: tuple[str, ...] = ()
) -> Client:
    """Somebody at a session, with these permissions (`app.codename`) and no others, who sees these tenants, or all."""
    user = User.objects.create_user(name, password="x", is_staff=staff)
    codes = [permission.partition(".")[2] for permission in permissions]
    codes += [] if tenants else ["see_all_tenants"]
    user.groups.set([Group.objects.get_or_create(name=f"tenant:{name}")[0] for name in tenants])
    user.user_permissions.set(Permission.objects.filter(codename__in=codes))
    client = Client()
    client.force_login(user)
    return client
