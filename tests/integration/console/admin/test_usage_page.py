"""The page of usage: for who may view tasks, cut to their tenants; its file has the same lines."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from a2a_console.admin import usage
from a2a_console.statistics.counts import TooMany
from a2a_tasks.models import Task
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_usage, make_task
from tests.support.console.api.world import asked, key_of, operates

pytestmark = pytest.mark.django_db
URL = "/admin/usage/"


def spent(tenant: str = "", **columns: Any) -> None:
    """A report of 1,234 tokens that cost 0.05 US dollars."""
    name = f"task of {tenant}"
    task = Task.objects.filter(public_id=name).first() or make_task(name)
    task.tenant = tenant
    about: dict[str, Any] = {"input_tokens": 1234, "cost": "0.05", "currency": "USD"}
    add_usage(task, **{**about, **columns})


class TestThePage:
    def test_shows_sums_a_chart_and_totals(self, admin_client: Client) -> None:
        spent(model="<b>large")
        page = admin_client.get(URL, {"by": "model"}).text
        assert "&lt;b&gt;large" in page
        assert page.count("1,234") >= 2
        assert "<strong>0.05 USD</strong>" in page
        assert '<i class="a2a-cost"' in page
        assert 'href="/admin/usage/"' in admin_client.get("/admin/").text

    def test_draws_tokens_where_no_cost_is_known(self, admin_client: Client) -> None:
        spent(cost=None, currency="")
        page = admin_client.get(URL).text
        assert '<i class="a2a-input"' in page
        assert "unknown" in page

    def test_rounds_money_and_keeps_the_exact_cost(self, admin_client: Client) -> None:
        spent(cost="0.123456")
        page = admin_client.get(URL).text
        assert 'title="0.123456 USD"><strong>0.12 USD</strong>' in page

    @pytest.mark.parametrize(
        ("by", "url"),
        [
            ("agent", "/admin/a2a_tasks/task/?agent=demo"),
            ("tenant", "/admin/a2a_tasks/task/?tenant=acme"),
            ("caller", "/admin/a2a_tasks/task/?owner=alice"),
            ("conversation", "/admin/a2a_tasks/task/?context=context-1"),
            ("model", "?model=m&amp;by=agent"),
            ("task", "/admin/a2a_tasks/task/{task}/change/"),
        ],
    )
    def test_links_each_line_to_its_tasks(self, admin_client: Client, by: str, url: str) -> None:
        spent("acme")
        key = Task.objects.get().pk
        assert f'href="{url.format(task=key)}"' in admin_client.get(URL, {"by": by}).text

    def test_has_spans_to_choose(self, admin_client: Client) -> None:
        page = admin_client.get(URL, {"by": "model"})
        today = timezone.now().date().isoformat()
        assert f"?by=model&amp;since={today}&amp;until={today}" in page.text

    def test_takes_days_and_values(self, admin_client: Client) -> None:
        spent(at=timezone.now() - timedelta(days=40), model="early")
        spent("acme", model="late")
        assert "early" not in admin_client.get(URL, {"by": "model"}).text
        since = (timezone.now() - timedelta(days=50)).date().isoformat()
        both = admin_client.get(URL, {"by": "model", "since": since}).text
        assert "early" in both
        assert "late" in both
        one = admin_client.get(URL, {"by": "model", "since": since, "tenant": "acme"}).text
        assert "early" not in one

    def test_says_what_is_wrong(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong = {"since": "2026-11-20", "until": "2026-11-19"}
        assert "after the last one" in admin_client.get(URL, wrong).text
        assert "Select a valid choice" in admin_client.get(URL, {"by": "moon"}).text
        assert admin_client.get(URL, {"by": "moon", "form": "csv"}).headers["content-type"] == "text/html; charset=utf-8"  # fmt: skip

        def too_many(*_: Any, **__: Any) -> Any:
            raise TooMany

        monkeypatch.setattr(usage, "sum_usage", too_many)
        assert "choose fewer days" in admin_client.get(URL).text

    def test_is_for_who_may_view_tasks(self, sign_in: SignIn) -> None:
        assert sign_in("view_run").get(URL).status_code == 403

    def test_has_only_rows_of_visible_tenants(self, sign_in: SignIn) -> None:
        spent(model="ours")
        spent("acme", model="theirs")
        page = sign_in("view_task").get(URL, {"by": "model"}).text
        assert "ours" in page
        assert "theirs" not in page

    def test_gives_a_file(self, admin_client: Client) -> None:
        spent(caller="=1+1")
        answer = admin_client.get(URL, {"by": "caller", "form": "csv"})
        assert answer.headers["content-disposition"] == 'attachment; filename="usage.csv"'
        heading, line = csv.reader(io.StringIO(answer.text))
        assert dict(zip(heading, line, strict=True))["caller"] == "'=1+1"
        assert line[-2:] == ["0.05", "USD"]


class TestTheApi:
    def test_gives_the_same_sums(self) -> None:
        spent("acme", model="m")
        spent("other", model="n")
        found = asked(key_of("admin:read", tenant="acme"), "/usage?by=task").json
        (line,) = found["lines"]
        assert (line["task"], line["input_tokens"], line["cost"]) == ("task of acme", 1234, "0.05")
        assert line["model"] is None
        assert [total["requests"] for total in found["totals"]] == [1]
        assert (found["complete"], found["more"]) == (True, False)
        whole = asked(key_of("admin:read"), "/usage?by=model&limit=1").json
        assert (len(whole["lines"]), whole["more"]) == (1, True)
        assert (
            asked(key_of("admin:read"), "/usage?model=n&by=model").json["lines"][0]["model"] == "n"
        )

    def test_gives_who_operates_an_agent_its_sums_alone(self) -> None:
        spent("acme", agent="demo")
        spent("acme", agent="tables")
        lines = asked(operates("demo", tenant="acme"), "/usage?by=agent").json["lines"]
        assert [line["agent"] for line in lines] == ["demo"]

    @pytest.mark.parametrize(
        "query",
        ["by=moon", "limit=0", "limit=1001", "since=2026-11-20&until=2026-11-20", "since=x"],
    )
    def test_refuses_what_it_cannot_sum(self, query: str) -> None:
        assert asked(key_of("admin:read"), f"/usage?{query}").status == 400

    @pytest.mark.parametrize(
        ("until", "status"), [("0001-01-01T00:00:00Z", 400), ("9999-12-31T23:59:59Z", 400)]
    )
    def test_knows_moments_at_the_ends_of_time(self, until: str, status: int) -> None:
        assert asked(key_of("admin:read"), f"/usage?until={until}").status == status


@pytest.mark.parametrize(
    ("since", "until"), [("", "9999-12-31"), ("", "0001-01-01"), ("0001-01-01", "9999-12-30")]
)
def test_days_at_the_ends_of_time_are_no_failure(
    admin_client: Client, since: str, until: str
) -> None:
    assert admin_client.get(URL, {"since": since, "until": until}).status_code == 200
