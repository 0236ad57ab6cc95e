"""Pages that ask before rows are deleted count what goes with them, however much it is."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from a2a_console.admin.widgets.deletion import NAMED, CountedDeletion
from a2a_console.site import site
from a2a_tasks.models import Assignment, Budget, BudgetUse, Grant
from a2a_tasks.store import budgets
from tests.support.console.admin.rows import make_task

pytestmark = pytest.mark.django_db
MANY = 2_000
#: Bytes of a page.
SHORT = 40_000


@pytest.fixture
def budget() -> Budget:
    """A budget with very many sums."""
    made = Budget.objects.create(name="models", unit="cost", limit=5, share="task")
    rows = (BudgetUse(budget=made, subject=str(n), since=budgets.BEGINNING) for n in range(MANY))
    BudgetUse.objects.bulk_create(rows)
    return made


@pytest.fixture
def eve() -> User:
    """A person with very many entries of a log, and with a task."""
    eve = User.objects.create_user("eve")
    eve.groups.add(Group.objects.create(name="tenant:acme"))
    entries = (
        LogEntry(user=eve, action_flag=CHANGE, action_time=timezone.now()) for _ in range(MANY)
    )
    LogEntry.objects.bulk_create(entries)
    Assignment.objects.create(task=make_task("t-1"), user=eve)
    return eve


def test_a_budget_counts_its_sums_and_names_none(
    admin_client: Client, budget: Budget, django_assert_max_num_queries: Any
) -> None:
    address = f"/admin/a2a_tasks/budget/{budget.pk}/delete/"
    with django_assert_max_num_queries(20):
        page = admin_client.get(address).content.decode()
    assert f"Budget usage: {MANY}" in page
    assert "1999" not in page
    assert len(page) < SHORT
    assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert not BudgetUse.objects.exists()


def test_a_person_counts_all_that_goes_with_it(
    admin_client: Client, eve: User, django_assert_max_num_queries: Any
) -> None:
    address = f"/admin/auth/user/{eve.pk}/delete/"
    with django_assert_max_num_queries(25):
        page = admin_client.get(address).content.decode()
    assert f"Log entries: {MANY}" in page
    assert "Assignments: 1" in page
    assert "User-group relationships: 1" in page
    assert len(page) < SHORT
    assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(username="eve").exists()


def test_the_action_for_all_rows_of_a_list_names_a_few(admin_client: Client) -> None:
    rows = [Grant(agent="echo", grantee=f"key:{n}", right="send") for n in range(3 * NAMED)]
    Grant.objects.bulk_create(rows)
    address = "/admin/a2a_tasks/grant/"
    form = {"action": "delete_selected", "select_across": "1", "_selected_action": rows[0].pk}
    page = admin_client.post(address, form).content.decode()
    assert f"Grants: {3 * NAMED}" in page
    assert f"and {2 * NAMED} more" in page
    assert page.count('name="_selected_action"') == 1
    assert admin_client.post(address, form | {"post": "yes"}).status_code == 302
    assert not Grant.objects.exists()


def test_the_action_for_some_rows_deletes_these(admin_client: Client) -> None:
    rows = [Grant(agent="echo", grantee=f"key:{n}", right="send") for n in range(3)]
    Grant.objects.bulk_create(rows)
    form = {"action": "delete_selected", "_selected_action": [rows[0].pk, rows[2].pk]}
    page = admin_client.post("/admin/a2a_tasks/grant/", form).content.decode()
    assert page.count('name="_selected_action"') == 2
    admin_client.post("/admin/a2a_tasks/grant/", form | {"post": "yes"})
    assert [row.pk for row in Grant.objects.all()] == [rows[1].pk]


def test_every_page_that_deletes_counts(rf: Any, admin_user: User) -> None:
    request = rf.get("/")
    request.user = admin_user
    for model, page in site._registry.items():
        if page.has_delete_permission(request):
            assert isinstance(page, CountedDeletion), model
