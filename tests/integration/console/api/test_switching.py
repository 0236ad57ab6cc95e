"""Agents, workers and lines by the API: what is set is set as in the admin, what is told as there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from a2a_tasks.access import switch_cache
from a2a_tasks.models import AgentSwitch, AuditEntry, Task
from a2a_tasks.store import run_lines
from a2a_tasks.store.run_lines import RunLogLine
from tests.integration.store.test_workers import beat, silent
from tests.support.console.admin.rows import add_run, make_task
from tests.support.console.api.world import asked, person

pytestmark = pytest.mark.django_db

SWITCH, VIEW = "a2a_tasks.change_agentswitch", "a2a_tasks.view_task"


@pytest.fixture(autouse=True)
def unswitched() -> Iterator[None]:
    """Nothing stays switched."""
    switch_cache.forget()
    yield
    switch_cache.forget()


def patch(who: Any, **body: Any) -> Any:
    return asked(who, "/agents/demo", body, verb="patch")


class TestSwitching:
    def test_sets_what_is_said_and_leaves_the_rest(self) -> None:
        bob = person(SWITCH, VIEW)
        answer = patch(bob, state="draining", max_running=3, queue="night", reason="deploy").json
        said = answer["switch"]
        assert (said["state"], said["max_running"], said["queue"]) == ("draining", 3, "night")
        assert (said["reason"], answer["enabled"], answer["queue"]) == ("deploy", True, "agents")
        assert said["by"].startswith("staff:")
        assert patch(bob, max_running=None).json["switch"]["state"] == "draining"
        assert not patch(bob, state="off").json["enabled"]
        actions = AuditEntry.objects.filter(object="demo").order_by("pk")
        assert list(actions.values_list("action", flat=True)) == [
            *("agent.queue", "agent.limit", "agent.drain", "agent.limit", "agent.disable")
        ]

    @pytest.mark.parametrize(
        "body",
        [
            {"state": "gone"},
            {"max_running": -1},
            {"max_running": 1_000_001},
            {"queue": "a b", "state": "off"},
            {"other": 1},
        ],
    )
    def test_refuses_nonsense_and_sets_nothing(self, body: dict[str, Any]) -> None:
        answer = patch(person(SWITCH), **body)
        assert (answer.status, answer.code) == (400, "invalid")
        assert not AgentSwitch.objects.exists()

    def test_of_no_agent_is_not_found(self) -> None:
        assert asked(person(SWITCH), "/agents/gone", {}, verb="patch").code == "not_found"

    def test_tells_who_sees_one_tenant_neither_who_switched_nor_why(self) -> None:
        patch(person(SWITCH, VIEW), state="draining", reason="acme sends too much")
        eve = person(VIEW, name="eve", tenants=("other",))
        said = asked(eve, "/agents/demo").json["switch"]
        assert (said["state"], said["by"], said["reason"]) == ("draining", "", "")

    def test_is_not_for_who_sees_one_tenant(self) -> None:
        acme = person(SWITCH, tenants=("acme",))
        assert patch(acme, state="off").code == "not_found"
        assert not AgentSwitch.objects.exists()


def test_an_agent_tells_its_load_and_who_runs_it() -> None:
    add_run(make_task("one"))
    beat(agents={"demo": "2.0.0"})
    demo = asked(person(VIEW), "/agents/demo").json
    assert demo["load"] == {"running": 0, "queued": 1}
    assert demo["health"] == {"ended": 0, "failed": 0}
    assert (demo["workers"], demo["versions"]) == (1, {"2.0.0": 1})
    acme = person(VIEW, name="eve", tenants=("acme",))
    assert asked(acme, "/agents/demo").json["load"] is None


def test_workers_are_told_with_their_state() -> None:
    beat("a:1")
    beat("b:2")
    silent("b:2", 60)
    items = asked(person("a2a_tasks.view_worker"), "/workers").json["items"]
    assert [(one["name"], one["state"]) for one in items] == [("a:1", "alive"), ("b:2", "dead")]


def test_lines_are_paged_by_their_numbers() -> None:
    run = add_run(make_task("one"))
    at = run.created_at
    run_lines.write([RunLogLine(run.pk, 1, at, 20, "agent", str(n)) for n in range(5)])
    bob = person("a2a_tasks.view_run")
    first = asked(bob, f"/runs/{run.pk}/lines?size=3").json
    assert [(one["number"], one["text"]) for one in first["items"]] == [
        (1, "0"),
        (2, "1"),
        (3, "2"),
    ]
    assert first["items"][0]["level"] == "INFO"
    rest = asked(bob, f"/runs/{run.pk}/lines?size=3&after={first['next']}").json
    assert ([one["text"] for one in rest["items"]], rest["next"]) == (["3", "4"], None)
    assert asked(bob, "/runs/999999/lines").code == "not_found"


@pytest.mark.parametrize(("tenants", "count"), [((), 1), (("",), 1), (("acme",), 0)])
def test_lines_reveal_the_host_and_are_not_for_the_staff_of_a_tenant(
    tenants: tuple[str, ...], count: int
) -> None:
    task = make_task("one")
    Task.objects.filter(pk=task.pk).update(tenant="".join(tenants))
    run = add_run(task)
    run_lines.write([RunLogLine(run.pk, 1, run.created_at, 20, "agent", "a path of the host")])
    answer = asked(person("a2a_tasks.view_run", tenants=tenants), f"/runs/{run.pk}/lines").json
    assert len(answer["items"]) == count
