"""Budgets in the admin: made there, and decided about on the page of a sum and in the inbox."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from a2a_tasks.models import AuditEntry, Budget, BudgetUse
from a2a_tasks.store import budgets
from tests.support.console.admin.rows import make_task

pytestmark = pytest.mark.django_db
PAGES = "/admin/a2a_tasks/"


def make(client: Client, **members: Any) -> str:
    """The page after the form of a budget was sent."""
    form = {
        "name": "models",
        "unit": "cost",
        "limit": "5",
        "currency": "USD",
        "share": "caller",
        "window": "day",
        "action": "ask",
        "enabled": "on",
        **members,
    }
    return client.post(f"{PAGES}budget/add/", form, follow=True).content.decode()


def asking() -> BudgetUse:
    """A sum about which operators are asked."""
    budget = Budget.objects.create(name="models", unit="cost", limit=5, action="ask")
    return BudgetUse.objects.create(
        budget=budget,
        subject="key:ann",
        since=budgets.BEGINNING,
        used=Decimal("5.01"),
        asked_at=timezone.now(),
        asked_for=make_task("t-1").pk,
    )


def decide(client: Client, use: BudgetUse, **form: str) -> str:
    """The page after a decision."""
    address = f"{PAGES}budgetuse/{use.pk}/decide/"
    return client.post(address, {"from": "inbox", **form}, follow=True).content.decode()


def test_a_budget_is_made_with_an_entry_of_the_audit_log(admin_client: Client) -> None:
    assert "was added successfully" in make(admin_client)
    made = Budget.objects.get()
    assert (made.limit, made.share, made.window, made.action) == (
        Decimal(5),
        "caller",
        "day",
        "ask",
    )
    assert AuditEntry.objects.filter(action="budget.create", object="models").exists()
    change = f"{PAGES}budget/{made.pk}/delete/"
    admin_client.post(change, {"post": "yes"})
    assert not Budget.objects.exists()
    assert AuditEntry.objects.filter(action="budget.delete", object="models").exists()


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"action": "pause", "window": "ever"}, "never resets cannot pause"),
        ({"limit": "-1"}, "is violated"),
        ({"limit": "NaN"}, "Enter a number"),
        ({"currency": "eur"}, "three capital letters"),
        ({"unit": "bananas"}, "not one of the available choices"),
    ],
)
def test_nonsense_is_refused(admin_client: Client, members: dict[str, str], told: str) -> None:
    assert told in make(admin_client, **members)
    assert not Budget.objects.exists()


def test_the_inbox_asks_and_an_operator_allows_more(admin_client: Client) -> None:
    use = asking()
    inbox = admin_client.get(f"{PAGES}waiting/").content.decode()
    assert "Spent 5.01 USD of 5.00 USD: allow 5.00 USD more?" in inbox
    assert "key:ann" in inbox
    page = decide(admin_client, use, do="allow", amount="2.5", reason="until Friday")
    assert "will go on" in page
    assert "allow 5.00 USD more?" not in page
    use.refresh_from_db()
    assert (use.allowed, use.asked_at) == (Decimal("2.5"), None)


def test_an_operator_allows_no_more(admin_client: Client) -> None:
    use = asking()
    assert "will fail" in decide(admin_client, use, do="refuse")
    use.refresh_from_db()
    assert use.refused


@pytest.mark.parametrize("amount", ["", "much", "0", "-3", "NaN", "Infinity", "1e99"])
def test_what_is_no_amount_changes_nothing(admin_client: Client, amount: str) -> None:
    use = asking()
    page = decide(admin_client, use, do="allow", amount=amount)
    assert "must be a positive number" in page or "This is not a number" in page
    use.refresh_from_db()
    assert use.asked_at is not None


def test_the_page_of_a_sum_has_the_form_and_no_other(admin_client: Client) -> None:
    use = asking()
    page = admin_client.get(f"{PAGES}budgetuse/{use.pk}/change/").content.decode()
    assert f"/budgetuse/{use.pk}/decide/" in page
    assert "_save" not in page


@pytest.mark.parametrize("tenants", [True, False])
def test_staff_without_the_right_do_not_decide(client: Client, tenants: bool) -> None:
    use = asking()
    bob = User.objects.create_user("bob", is_staff=True)
    codes = ["view_task", *(["see_all_tenants"] if tenants else ["change_budgetuse"])]
    bob.user_permissions.set(Permission.objects.filter(codename__in=codes))
    client.force_login(bob, "django.contrib.auth.backends.ModelBackend")
    inbox = client.get(f"{PAGES}waiting/")
    assert inbox.status_code == 200
    assert "more?" not in inbox.content.decode()
    answer = client.post(f"{PAGES}budgetuse/{use.pk}/decide/", {"do": "allow", "amount": "1"})
    assert answer.status_code == 403
    use.refresh_from_db()
    assert use.allowed == 0
