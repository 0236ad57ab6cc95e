"""What no row can have is asked for: the page says so, on whichever database, and nothing fails."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tests.support.console.admin.rows import make_task
from tests.support.rows import rolled_back, rows
from tests.support.thorough import THOROUGH

pytestmark = pytest.mark.django_db

#: Of those that any list has, `make test` asks for three of each.
FILTERS = ("agent", "tenant", "owner", "about", "outcome", "context", "who", "kind", "status")


def test_a_nul_in_an_address_is_no_failure_of_the_host(admin_client: Client) -> None:
    make_task()
    answers = {
        (model._meta.label, name): admin_client.get(
            reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"),
            {name: "\0"},
        ).status_code
        for model in admin.site._registry
        if model._meta.app_label.startswith("a2a_")
        for name in (FILTERS if THOROUGH else FILTERS[:3])
    }
    assert {asked: status for asked, status in answers.items() if status >= 500} == {}


@rows(
    ("path", "said"),
    [
        ("waiting/assign/", {"do": "give", "to": "\0"}),
        ("task/{}/run-again/", {"nonce": "\0", "confirmed": "yes"}),
        ("task/bulk/run-again/", {"nonce": "\0"}),
        ("agentswitch/agent/demo/set/", {"do": "limit", "most": "3", "reason": "\0"}),
        ("agentswitch/agent/demo/set/", {"do": "limit", "most": "9" * 30}),
        ("agentswitch/agent/demo/set/", {"do": "limit", "most": "9" * 5000}),
    ],
    within=rolled_back,
)
def test_nor_is_one_in_a_form(path: str, said: dict[str, str], admin_client: Client) -> None:
    task = make_task()
    form = {**said, "task": task.pk, "keys": task.pk}
    answer = admin_client.post(f"/admin/a2a_tasks/{path.format(task.pk)}", form)
    assert answer.status_code < 500
