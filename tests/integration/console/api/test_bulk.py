"""Many tasks at once, by the API: what is said before, what is done, and an export that is sent as it is read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.test import AsyncClient
from psycopg.errors import DeadlockDetected

from a2a_console.bulk import actions as bulk
from a2a_console.bulk import export
from a2a_console.search import selection
from a2a_console.search.task_record import COLUMNS
from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import AuditEntry, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from tests.support.console.admin.rows import add_run, make_task
from tests.support.console.api.world import API, Answer, asked, key_of, operates
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db
WRITE = "admin:write"


def ended(name: str, state: TaskState = TaskState.FAILED, **about: Any) -> Task:
    task = make_task(name, state=state, **about)
    add_run(task)
    return task


def of(tenant: str, name: str) -> Task:
    task = make_task(name)
    Task.objects.filter(pk=task.pk).update(tenant=tenant)
    return task


def told(verb: str, who: str = "", /, **said: Any) -> dict[str, Any]:
    """What the API says about many."""
    answer = asked(who or key_of(WRITE), f"/tasks/{verb}", said)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def states() -> dict[str, str]:
    return {task.public_id: TaskState(task.state).word for task in Task.objects.all()}


class TestBeforeItIsDone:
    def test_it_is_counted_by_state_and_agent_and_nothing_is_done(self) -> None:
        one, two = make_task("one"), make_task("two", state=TaskState.INPUT_REQUIRED)
        tables, done = make_task("three", agent="tables"), ended("four")
        before = states()
        plan = told("cancel", all=True, dry_run=True)
        assert plan["found"] == 3
        assert sorted((part["state"], part["agent"], part["count"]) for part in plan["parts"]) == [
            ("input-required", "demo", 1),
            ("submitted", "demo", 1),
            ("submitted", "tables", 1),
        ]
        assert plan["keys"] == [tables.pk, two.pk, one.pk]
        assert plan["cancelled"] == 0
        again = told("run-again", all=True, dry_run=True)
        assert (again["keys"], again["again"]) == ([done.pk], [])
        assert states() == before

    def test_keys_that_were_told_mean_these_and_no_others(self) -> None:
        first = make_task("one")
        plan = told("cancel", agent="demo", dry_run=True)
        make_task("came later")
        assert told("cancel", keys=plan["keys"])["cancelled"] == 1
        assert states() == {"one": "canceled", "came later": "submitted"}
        assert plan["keys"] == [first.pk]

    def test_those_in_no_state_for_it_and_those_that_are_not_there_are_counted(self) -> None:
        works, done = make_task("one"), ended("two")
        plan = told("cancel", keys=[works.pk, done.pk, 10**9], dry_run=True)
        assert (plan["found"], plan["others"], plan["missing"]) == (1, 1, 1)

    @rows(
        ("said", "name"),
        [
            ({}, "all"),
            ({"all": False}, "all"),
            ({"dry_run": True}, "all"),
            ({"state": []}, "state"),
            ({"id_prefix": ""}, "id_prefix"),
            ({"text": " "}, "text"),
            ({"keys": []}, "keys"),
            ({"keys": [1] * 1001}, "keys"),
            ({"keys": ["x"]}, "keys.0"),
            ({"agnet": "demo"}, "agnet"),
            ({"state": "failed"}, "state"),
            ({"state": ["dead"]}, "state.0"),
            ({"size": 3}, "size"),
            ({"all": True, "cursor": "x"}, "cursor"),
        ],
        ids=str,
        within=rolled_back,
    )
    @rows("verb", ["cancel", "run-again"], within=rolled_back)
    def test_it_has_to_be_said_which(self, verb: str, said: dict[str, Any], name: str) -> None:
        make_task("one")
        ended("two")
        before = states()
        answer = asked(key_of(WRITE), f"/tasks/{verb}", said)
        assert (answer.status, answer.json["errors"][0]["name"]) == (400, name)
        assert states() == before


class TestCancelling:
    def test_is_done_to_what_is_meant_and_is_written_down_for_each(self) -> None:
        for name in ("one", "two"):
            make_task(name, owner="key:carol")
        make_task("hers", owner="key:dora")
        answer = told("cancel", owner="key:carol")
        assert (answer["found"], answer["cancelled"], answer["next"]) == (2, 2, None)
        assert states() == {"one": "canceled", "two": "canceled", "hers": "submitted"}
        entries = AuditEntry.objects.filter(action="task.cancel").order_by("object")
        assert list(entries.values_list("object", flat=True)) == ["one", "two"]
        assert all(entry.actor.startswith("key:") for entry in entries)

    def test_goes_on_in_portions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bulk, "AT_ONCE", 2)
        for number in range(5):
            make_task(f"t-{number}")
        answer, done = told("cancel", agent="demo"), []
        done.append(answer["cancelled"])
        while answer["next"]:
            answer = told("cancel", agent="demo", cursor=answer["next"])
            done.append(answer["cancelled"])
        assert done == [2, 2, 1]
        assert set(states().values()) == {"canceled"}

    def test_of_states_that_cannot_be_is_of_nothing(self) -> None:
        ended("one", TaskState.COMPLETED)
        make_task("two")
        assert told("cancel", state=["completed"])["found"] == 0
        assert states() == {"one": "completed", "two": "submitted"}

    def test_is_of_ones_own_tenant_alone(self) -> None:
        theirs = of("globex", "theirs")
        mine = of("acme/berlin", "mine")
        key = key_of(WRITE, tenant="acme")
        answer = told("cancel", key, keys=[theirs.pk, mine.pk])
        assert (answer["keys"], answer["others"], answer["missing"]) == ([mine.pk], 0, 1)
        assert told("cancel", key, all=True)["found"] == 0
        assert states() == {"theirs": "submitted", "mine": "canceled"}

    def test_by_who_operates_an_agent_is_of_its_tasks(self) -> None:
        make_task("one")
        make_task("two", agent="tables")
        assert told("cancel", operates("tables"), all=True)["cancelled"] == 1
        assert states() == {"one": "submitted", "two": "canceled"}


class TestRunningAgain:
    def test_names_the_new_ones_and_says_why_not(self) -> None:
        ended("one", agent="gone")
        two = ended("two")
        answer = told("run-again", state=["failed"])
        (new,) = answer["again"]
        assert (answer["found"], new["key"], new["before"]) == (2, two.pk, False)
        assert Task.objects.get(pk=new["new_key"]).public_id == new["new_id"]
        (why,) = answer["refused"]
        assert (why["count"], "not on this host any more" in why["reason"]) == (1, True)
        assert AuditEntry.objects.get(action="task.run_again").object == "two"

    def test_is_done_once_for_one_nonce_however_often_it_is_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk, "AT_ONCE", 1)
        for name in ("one", "two"):
            ended(name)
        wish: dict[str, Any] = {"state": ["failed"], "nonce": "tuesday"}
        first = told("run-again", **wish)
        (repeated,) = told("run-again", **wish)["again"]
        assert repeated == {**first["again"][0], "before": True}
        second = told("run-again", **wish, cursor=first["next"])
        assert (len(second["again"]), second["next"]) == (1, None)
        assert Task.objects.count() == 4

    def test_is_not_for_who_operates_the_agent(self) -> None:
        ended("one")
        answer = asked(operates("demo"), "/tasks/run-again", {"all": True})
        assert (answer.status, answer.code) == (403, "missing_scope")


async def exported(key: str, **said: Any) -> Answer:
    """The export, as a server that waits without a thread sends it."""
    answer: Any = await AsyncClient().post(
        f"{API}/tasks/export",
        json.dumps(said),
        content_type="application/json",
        headers={"X-API-Key": key},
    )
    assert answer.streaming
    body = b"".join([chunk async for chunk in answer.streaming_content])
    return Answer(
        answer.status_code, {name.lower(): text for name, text in answer.headers.items()}, body
    )


async def a_key(*scopes: str, tenant: str = "") -> str:
    return (await run_in_thread(issue, "test", scopes=scopes, tenant=tenant)).key


class TestAnExport:
    @pytest.mark.django_db(transaction=True)
    async def test_has_all_that_is_meant_in_slices_and_is_written_down(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(selection, "SLICE", 2)
        for number in range(5):
            await run_in_thread(make_task, f"t-{number}")
        await run_in_thread(make_task, "other", agent="tables")
        answer = await exported(await a_key("admin:read"), agent="demo")
        assert answer.headers["content-type"] == "application/jsonl; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        lines = answer.json["items"]
        assert [line["id"] for line in lines] == [f"t-{number}" for number in (4, 3, 2, 1, 0)]
        assert tuple(lines[0]) == COLUMNS
        entry = await run_in_thread(AuditEntry.objects.get, action="task.export")
        assert "'agent': 'demo'" in entry.detail

    @pytest.mark.django_db(transaction=True)
    async def test_is_written_down_without_names_and_words_that_no_erasure_would_find(self) -> None:
        key = await a_key("admin:read")
        for given in ({"owner": "key:theirs"}, {"text": "alice"}):
            await exported(key, **given)
        entries = AuditEntry.objects.filter(action="task.export").order_by("pk")
        one, two = await run_in_thread(list, entries)
        assert (one.object, "key:theirs" in one.detail) == ("key:theirs", False)
        assert (two.object, "alice" in two.detail) == ("", False)

    @pytest.mark.django_db(transaction=True)
    async def test_as_csv_has_a_heading_and_no_formulas(self) -> None:
        await run_in_thread(make_task, "=1+1")
        answer = await exported(await a_key("admin:read"), format="csv")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert "attachment" in answer.headers["content-disposition"]
        heading, line = csv.reader(io.StringIO(answer.body.decode()))
        assert tuple(heading) == COLUMNS
        assert line[1] == "'=1+1"

    @pytest.mark.django_db(transaction=True)
    async def test_has_nothing_of_another_tenants(self) -> None:
        await run_in_thread(of, "globex", "theirs")
        await run_in_thread(of, "acme", "mine")
        answer = await exported(await a_key("admin:read", tenant="acme"))
        assert [line["id"] for line in answer.json["items"]] == ["mine"]
        entry = await run_in_thread(AuditEntry.objects.get, action="task.export")
        assert entry.tenant == "acme"

    @pytest.mark.django_db(transaction=True)
    async def test_that_breaks_off_does_not_look_whole(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lost(*_: Any) -> Iterator[list[dict[str, Any]]]:
            yield []
            raise OperationalError from DeadlockDetected()

        monkeypatch.setattr(export, "export_rows", lost)
        with pytest.raises(Overloaded):
            await exported(await a_key("admin:read"))

    def test_refuses_what_it_does_not_know(self) -> None:
        wrong: list[dict[str, Any]] = [
            {"format": "xml"},
            {"agnet": "x"},
            {"cursor": "x"},
            {"state": []},
        ]
        for said in wrong:
            answer = asked(key_of("admin:read"), "/tasks/export", said)
            assert (answer.status, answer.code) == (400, "invalid")
