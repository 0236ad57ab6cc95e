"""Tasks: found by what is asked, shown with all that belongs to them, cancelled as everywhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from a2a_console.api import stored
from a2a_tasks.models import Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import add_artifact, add_run, add_status, make_task
from tests.support.console.api.world import asked, key_of, person, populated

pytestmark = pytest.mark.django_db

VIEW = ("a2a_tasks.view_task", "a2a_tasks.view_context", "a2a_tasks.view_run")


class TestTheList:
    def test_has_what_is_asked_for(self) -> None:
        first = make_task("s-1")
        long_ago = datetime(2019, 1, 1, tzinfo=UTC)
        Task.objects.filter(pk=first.pk).update(status_at=long_ago)
        make_task("w-2", state=TaskState.WORKING, owner="carol", context_id="context-2")
        make_task("f-3", state=TaskState.FAILED, agent="tables", dialect="v03")
        add_run(make_task("W-4"), queue="crawl", due_at=long_ago)
        bob = person(*VIEW)
        for query, ids in (
            ("state=working", ["w-2"]),
            ("state=working&state=failed", ["f-3", "w-2"]),
            ("state=unfinished", ["W-4", "w-2", "s-1"]),
            ("agent=tables", ["f-3"]),
            ("owner=carol", ["w-2"]),
            ("owner=", []),
            ("tenant=", ["W-4", "f-3", "w-2", "s-1"]),
            ("context=context-2", ["w-2"]),
            ("dialect=v03", ["f-3"]),
            ("stuck=any", ["W-4"]),
            ("stuck=no-worker&state=unfinished", ["W-4"]),
            ("stuck=lost", []),
            ("id=w-2", ["w-2"]),
            ("id_prefix=w-", ["w-2"]),
            ("id_prefix=%25", []),
            ("state=unfinished&agent=demo&owner=alice", ["W-4", "s-1"]),
            ("created_after=2100-01-01T00:00:00Z", []),
            ("created_before=2100-01-01", ["W-4", "f-3", "w-2", "s-1"]),
            ("created_before=2100-01-01T00:00:00%2B01:00&size=1", ["W-4"]),
            ("updated_before=2020-01-01T00:00:00Z", ["s-1"]),
            ("updated_after=2020-01-01T00:00:00Z", ["W-4", "f-3", "w-2"]),
        ):
            answer = asked(bob, f"/tasks?{query}")
            assert answer.status == 200, answer.body
            assert [item["id"] for item in answer.json["items"]] == ids, query

    def test_shows_a_line_of_each(self) -> None:
        world = populated("acme")
        (line,) = asked(person(*VIEW), "/tasks").json["items"]
        assert line == {
            "key": world.task.pk,
            "id": "task-one",
            "agent": "demo",
            "tenant": "acme",
            "owner": "alice",
            "context": "context-one",
            "context_key": world.task.context_id,
            "state": "submitted",
            "maker": "",
            "opening": "",
            "binding": "",
            "dialect": "v10",
            "is_task": True,
            "created_at": line["created_at"],
            "updated_at": line["updated_at"],
            "last_event": 3,
        }


class TestATask:
    def test_is_shown_with_what_belongs_to_it(self) -> None:
        task = make_task("task-1", text="hello")
        add_status(task, TaskState.WORKING, "at it")
        add_artifact(task, "page", "one ", "two")
        add_artifact(task, "open", "begun", closed=False)
        run = add_run(task, RunStatus.RUNNING, attempt=2, worker="worker-1")
        Task.objects.filter(pk=task.pk).update(
            metadata='{"a":1}', status_message='{"parts":[{"text":"at it"}]}', memory='"private"'
        )
        shown = asked(person(*VIEW), f"/tasks/{task.pk}").json
        assert (shown["id"], shown["state"], shown["metadata"]) == ("task-1", "working", {"a": 1})
        assert shown["status_message"]["parts"] == [{"text": "at it"}]
        assert [m["body"]["parts"][0]["text"] for m in shown["messages"]] == ["hello"]
        page, open_ = shown["artifacts"]
        assert (page["id"], page["is_complete"], page["body"]["parts"][1]["text"]) == (
            "page",
            True,
            "two",
        )
        assert (open_["id"], open_["is_complete"], open_["body"]) == ("open", False, None)
        (its_run,) = shown["runs"]
        assert (its_run["key"], its_run["attempt"], its_run["worker"]) == (run.pk, 2, "worker-1")
        assert its_run["lease_until"] is not None
        assert shown["events"] == {"first": 1, "last": task.last_event}
        assert "a-secret-token" not in json.dumps(shown)
        assert "private" not in json.dumps(shown)

    def test_tells_only_the_size_of_what_is_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stored, "LIMIT", 50)
        task = make_task("task-1", text="x" * 60)
        (message,) = asked(person(*VIEW), f"/tasks/{task.pk}").json["messages"]
        assert message["body"] is None
        assert message["size"] > 60

    def test_says_what_json_can_say_whatever_an_agent_said(self) -> None:
        task = make_task("task-1")
        Message.objects.update(body='{"parts":[{"text":"\\ud800 \\u2028 <b>"}]}')
        answer = asked(person(*VIEW), f"/tasks/{task.pk}")
        assert b"\\ud800" in answer.body
        assert answer.json["messages"][0]["body"]["parts"][0]["text"] == "\ud800 \u2028 <b>"

    def test_that_is_not_there_is_not_found(self) -> None:
        bob = person(*VIEW)
        for key in ("0", "999999999", "9" * 30, "9" * 5000):
            assert asked(bob, f"/tasks/{key}").code == "not_found"


class TestEvents:
    def test_come_by_number_and_one_goes_on_from_the_last(self) -> None:
        task = make_task("task-1", text="hello")
        add_status(task, TaskState.WORKING, "at it")
        add_artifact(task, "page", "one ", "two")
        bob = person(*VIEW)
        first = asked(bob, f"/tasks/{task.pk}/events?size=2").json
        assert [(e["number"], e["kind"], e["state"]) for e in first["items"]] == [
            (1, "input", None),
            (2, "status", "working"),
        ]
        assert first["items"][0]["body"]["parts"] == [{"text": "hello"}]
        assert first["next"] == 2
        rest = asked(bob, f"/tasks/{task.pk}/events?after=2").json
        assert [e["number"] for e in rest["items"]] == [3, 4]
        assert rest["next"] is None
        add_status(task, TaskState.COMPLETED)
        assert [
            e["state"] for e in asked(bob, f"/tasks/{task.pk}/events?after=4").json["items"]
        ] == ["completed"]

    def test_that_retention_removed_are_not_there(self) -> None:
        task = make_task("task-1")
        add_status(task, TaskState.COMPLETED)
        Event.objects.filter(number=1).delete()
        bob = person(*VIEW)
        assert asked(bob, f"/tasks/{task.pk}").json["events"] == {"first": 2, "last": 2}
        assert [e["number"] for e in asked(bob, f"/tasks/{task.pk}/events").json["items"]] == [2]

    def test_have_numbers(self) -> None:
        task, bob = make_task("task-1"), person(*VIEW)
        for after in ("-1", "x", str(2**31), "1.5", ""):
            answer = asked(bob, f"/tasks/{task.pk}/events?after={after}")
            assert (answer.code, answer.json["errors"][0]["name"]) == ("invalid", "after")


@pytest.mark.django_db
class TestCancelling:
    def test_is_final_and_stops_the_run(self) -> None:
        task = make_task("task-1", state=TaskState.WORKING)
        add_run(task, RunStatus.RUNNING)
        answer = asked(key_of("admin:write"), f"/tasks/{task.pk}/cancel", post=True)
        assert (answer.status, answer.json["state"]) == (200, "canceled")
        task.refresh_from_db()
        assert task.state == TaskState.CANCELED
        assert Run.objects.get().status == RunStatus.CANCELED
        again = asked(key_of("admin:write"), f"/tasks/{task.pk}/cancel", post=True)
        assert (again.status, again.code) == (409, "conflict")

    def test_is_in_the_log_with_who_did_it(self, caplog: pytest.LogCaptureFixture) -> None:
        task = make_task("task-1")
        with caplog.at_level("INFO"):
            asked(person("a2a_tasks.change_task"), f"/tasks/{task.pk}/cancel", post=True)
        assert any("canceled by operator user:" in line for line in caplog.messages)


class TestRuns:
    def test_are_found_by_what_is_asked(self) -> None:
        one, two = make_task("one"), make_task("two", agent="tables")
        failed = add_run(one, RunStatus.FAILED, worker="w-1", error="Traceback\nboom")
        queued = add_run(two, RunStatus.QUEUED, queue="slow")
        bob = person(*VIEW)

        def keys(query: str) -> list[int]:
            return [run["key"] for run in asked(bob, f"/runs?{query}").json["items"]]

        assert keys("") == [queued.pk, failed.pk]
        assert keys("status=failed&status=running") == [failed.pk]
        assert keys("agent=tables") == [queued.pk]
        assert keys("worker=w-1") == [failed.pk]
        assert keys("queue=slow") == [queued.pk]
        assert keys("created_after=2100-01-01T00:00:00Z") == []
        of_one = asked(bob, f"/tasks/{one.pk}/runs").json["items"]
        assert [run["key"] for run in of_one] == [failed.pk]
        assert "boom" not in json.dumps(of_one)
        assert asked(bob, f"/runs/{failed.pk}").json["error"] == "Traceback\nboom"

    @pytest.mark.django_db
    def test_keep_their_trace_from_operators_of_a_tenant(self) -> None:
        world = populated("acme")
        bob = person("a2a_tasks.view_run", tenants=("acme",))
        for who in (key_of("admin:read", tenant="acme"), bob):
            answer = asked(who, f"/runs/{world.run.pk}")
            assert (answer.status, answer.json["error"]) == (200, None)
            assert b"boom" not in answer.body

    @pytest.mark.django_db
    def test_show_it_to_staff_of_a_host_without_tenants(self) -> None:
        world = populated()
        bob = person("a2a_tasks.view_run", tenants=("",))
        assert "boom" in asked(bob, f"/runs/{world.run.pk}").json["error"]


class TestContexts:
    def test_are_found_and_shown_with_their_tasks(self) -> None:
        make_task("one", context_id="c-1")
        make_task("two", context_id="c-1")
        make_task("three", context_id="c-2", agent="tables")
        bob = person(*VIEW)

        def ids(query: str) -> list[str]:
            return [context["id"] for context in asked(bob, f"/contexts?{query}").json["items"]]

        assert ids("") == ["c-2", "c-1"]
        assert ids("agent=demo") == ids("id=c-1") == ["c-1"]
        assert ids("owner=bob") == ids("tenant=acme") == []
        key = asked(bob, "/contexts?id=c-1").json["items"][0]["key"]
        shown: Any = asked(bob, f"/contexts/{key}").json
        assert [task["id"] for task in shown["tasks"]] == ["two", "one"]


class TestAgents:
    def test_are_listed_with_what_they_declare_and_have_to_do(self, settings: Any) -> None:
        settings.A2A_DISABLED_AGENTS = "tables"
        make_task("one")
        make_task("two", state=TaskState.FAILED)
        make_task("three", agent="gone")
        bob = person(*VIEW)
        agents = {agent["slug"]: agent for agent in asked(bob, "/agents").json["items"]}
        assert agents["demo"]["enabled"]
        assert not agents["tables"]["enabled"]
        assert "gone" not in agents
        assert agents["demo"]["tasks"] == {
            "by_state": {"submitted": 1, "failed": 1},
            "at_least": [],
        }
        assert agents["tables"]["tasks"]["by_state"] == {}
        one = asked(bob, "/agents/demo").json
        assert one == agents["demo"]
        assert one["skills"][0]["id"]
        assert one["schemes"] == ["apiKey"]

    def test_are_counted_no_further_than_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("a2a_console.api.agents.COUNTED", 2)
        for n in range(4):
            make_task(f"t-{n}")
        counts = asked(person(*VIEW), "/agents/demo").json["tasks"]
        assert counts == {"by_state": {"submitted": 2}, "at_least": ["submitted"]}

    def test_that_are_not_here_are_not_found(self) -> None:
        bob = person(*VIEW)
        for slug in ("gone", "Demo", "demo%00", "demo%2f"):
            assert asked(bob, f"/agents/{slug}").code == "not_found"
