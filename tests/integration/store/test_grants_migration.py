"""The migration that puts a slash before the tenants that only requests have named."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.caller import ANONYMOUS, Caller, Scope
from a2a_tasks.models import Context, Task
from a2a_tasks.store.accept import accept
from a2a_tasks.store.tasks import find
from tests.support.store.world import new

pytestmark = pytest.mark.django_db

migration: Any = import_module("a2a_tasks.migrations.0006_grants")


def callers() -> list[Caller]:
    """Callers without a tenant, each of whom has named one in a request."""
    key = principal_of(issue("test").row)
    return [
        ANONYMOUS,
        *(Caller(principal=p) for p in ("user:7", "cert:spiffe://x", "jwt:i s", key)),
    ]


def as_before(caller: Caller, task: str, tenant: str) -> None:
    """A task as the release before wrote it."""
    scope = Scope(tenant, caller.principal, "demo")
    accept(new(task, scope=scope, principal=caller.principal, context_id=task))


def test_whoever_named_one_finds_its_tasks_again() -> None:
    known = callers()
    for number, caller in enumerate(known):
        as_before(caller, f"t{number}", "acme")
    migration.lead_with_a_slash(apps, None)
    migration.lead_with_a_slash(apps, None)  # a second time changes nothing
    for number, caller in enumerate(known):
        assert find(caller.scope("demo", "acme"), f"t{number}")
    assert set(Context.objects.values_list("tenant", flat=True)) == {"/acme"}
    migration.lead_with_none(apps, None)
    assert set(Task.objects.values_list("tenant", flat=True)) == {"acme"}


def test_whoever_has_a_tenant_keeps_its_tasks() -> None:
    row = issue("test", tenant="acme").row
    caller = Caller(principal=principal_of(row), tenant="acme")
    for task, tenant in (("t1", "acme"), ("t2", "acme/x")):
        as_before(caller, task, tenant)
    migration.lead_with_a_slash(apps, None)
    assert find(caller.scope("demo"), "t1")
    assert find(caller.scope("demo", "x"), "t2")


def test_the_claim_says_whether_tokens_have_tenants(settings: Any) -> None:
    settings.A2A_JWT_TENANT_CLAIM = "tenant"
    caller = Caller(principal="jwt:i s", tenant="acme")
    as_before(caller, "t1", "acme")
    migration.lead_with_a_slash(apps, None)
    assert find(caller.scope("demo"), "t1")
