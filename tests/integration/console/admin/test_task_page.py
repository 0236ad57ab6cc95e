"""The page of a task: a header and tabs, which follow the task; cut by what the user may see."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.db.models import Subquery
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_console.admin.tasks import sources
from a2a_push.models import Delivery, DeliveryStatus
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import AuditEntry, Context, Event, Run, RunStatus, Task
from a2a_tasks.protocol.forms import FORM
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, run_lines, segments
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import (
    add_artifact,
    add_run,
    add_status,
    add_step,
    add_usage,
    make_task,
)
from tests.support.push.rows import add_attempt, make_config, make_delivery
from tests.support.rows import rolled_back, rows
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def url(task: Task, view: str = "change") -> str:
    """The address of a page of the task, or of a piece of one."""
    return f"/admin/a2a_tasks/task/{task.pk}/{view}/"


def facts(client: Client, task: Task) -> str:
    """The tab of raw facts."""
    return tab(client, task, "?tab=facts")


def tab(client: Client, task: Task, query: str = "") -> str:
    """The lower part of the page."""
    body = client.get(url(task) + query).text
    return body[body.index('id="a2a-tab"') : body.index('id="a2a-help"')]


def add_chunks(task: Task, count: int, artifact_id: str = "novel") -> None:
    """So many more pieces of an artifact that grows, at once."""
    first = task.last_event + 1
    Event.objects.bulk_create(
        Event(
            task=task,
            number=number,
            kind=EventKind.ARTIFACT,
            body=json.dumps(
                {"artifact": {"artifactId": artifact_id, "parts": [{"text": f"word{number} "}]}}
            ),
        )
        for number in range(first, first + count)
    )
    task.last_event += count
    task.save()


def when(task: Task, number: int, moment: datetime) -> None:
    Event.objects.filter(task=task, number=number).update(created_at=moment)


def in_order(body: str, *words: str) -> bool:
    found = 0
    for word in words:
        found = body.find(word, found) + 1
        if not found:
            return False
    return True


class TestTheTimeline:
    def test_tells_everything_in_one_order(self, admin_client: Client) -> None:
        task = make_task("the-task", text="please")
        when(task, 1, at(0))
        Task.objects.filter(pk=task.pk).update(created_at=at(0))
        add_status(task, TaskState.WORKING, "at-work")
        when(task, 2, at(40))
        died = f"Attempt 1 on worker-a died: its lease ended at {at(20).isoformat(timespec='seconds')}.\nTraceback: no paper"
        run = add_run(
            task,
            RunStatus.FAILED,
            attempt=2,
            worker="worker-b",
            error=died,
            started_at=at(30),
            ended_at=at(60),
        )
        Run.objects.filter(pk=run.pk).update(created_at=at(1))
        step = add_step(task, run, "book-the-room")
        type(step).objects.filter(task=task).update(created_at=at(50))
        config = make_config(task)
        attempt = add_attempt(make_delivery(config, number=2, through=2), 503)
        type(attempt).objects.filter(pk=attempt.pk).update(started_at=at(45))
        line = run_lines.RunLogLine(
            run.pk, 2, at(55), logging.WARNING, "agents.demo", "paper-is-low"
        )
        run_lines.write([line])
        add_status(task, TaskState.FAILED)
        when(task, 3, at(70))
        body = tab(admin_client, task)
        assert in_order(
            body,
            "please",
            "queued",
            "fenced",
            "attempt 1 on worker-a: its lease ended",
            "attempt 2 on worker-b",
            "at-work",
            "503",
            "book-the-room",
            "warning",
            "paper-is-low",
            "attempt 2 after 30 s",
            "Traceback: no paper",
            'class="a2a-badge a2a-failed"',
        )

    def test_has_every_attempt_of_a_run_that_waited(self, admin_client: Client) -> None:
        task, begun = make_task(), NOW.timestamp()
        past = [[1, "worker-a", begun + 1, begun + 13, segments.PARKED, "the bank"]]
        about = {"attempt": 0, "started_at": at(1), "ended_at": at(60)}
        run = add_run(task, RunStatus.CANCELED, past=past, **about)
        Run.objects.filter(pk=run.pk).update(created_at=at(0))
        body = tab(admin_client, task)
        says = ("started", "attempt 1 on worker-a in the step the bank", "attempt 1 after 12 s")
        assert in_order(body, *says)
        assert (body.count("started"), body.count("queued")) == (1, 0)

    def test_says_when_an_attempt_died_before_a_wait(self, admin_client: Client) -> None:
        task, begun = make_task(), NOW.timestamp()
        past = [
            [1, "worker-a", begun, begun + 5, segments.DIED, ""],
            [2, "worker-b", begun + 5.5, begun + 9, segments.PARKED, "the bank"],
        ]
        error = "Attempt 1 on worker-a died: its process ended with code 3.\n"
        about = {"attempt": 2, "started_at": at(30), "ended_at": at(31), "error": error}
        run = add_run(task, RunStatus.ENDED, past=past, worker="worker-b", **about)
        Run.objects.filter(pk=run.pk).update(created_at=at(0))
        body = tab(admin_client, task)
        assert in_order(body, "fenced", "attempt 1 on worker-a: its process", "parked", "ended")

    def test_says_when_an_attempt_died_with_others_of_its_process(
        self, admin_client: Client
    ) -> None:
        task = make_task()
        error = "Attempt 1 on worker-a died with 2 other runs: its lease ended at 2026-11-29T19:20:53+00:00.\n"
        add_run(task, RunStatus.RUNNING, attempt=2, worker="worker-b", error=error)
        body = tab(admin_client, task)
        assert in_order(body, "fenced", "attempt 1 on worker-a: its lease ended", "2 other runs")

    def test_tells_of_tools(self, admin_client: Client) -> None:
        task = make_task("the-task")
        for number, about in enumerate(
            ({"toolCall": {"id": "call-7", "name": "sum <b>"}}, {"toolResult": {}}), 2
        ):
            message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"data": about}]}
            body = write({"status": {"state": "TASK_STATE_WORKING", "message": message}}).decode()
            Event.objects.create(task=task, number=number, kind=EventKind.TOOL, body=body)
        Task.objects.filter(pk=task.pk).update(last_event=3)
        body = tab(admin_client, task)
        assert in_order(body, "call of the tool <bdi>sum &lt;b&gt;", "call-7", "result of a tool")

    def test_has_the_trace_of_an_attempt_that_died_also_if_the_last_one_ended_well(
        self, admin_client: Client
    ) -> None:
        death = "Attempt 1 on worker-a was stopped with its process.\n"
        about = {"worker": "worker-b", "ended_at": timezone.now()}
        for error in (death, f"Traceback: no paper\n{death}"):
            task = make_task(error)
            add_run(task, RunStatus.ENDED, attempt=2, error=error, **about)
            body = tab(admin_client, task)
            assert "attempt 1 on worker-a: stopped with its process" in body
            assert ("Trace" in body, "no paper" in body) == (error != death, error != death)

    def test_says_until_when_an_attempt_holds_the_task(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.WORKING)
        run = add_run(
            task,
            RunStatus.RUNNING,
            attempt=2,
            worker="worker-b",
            error="Attempt 1 on worker-a was stopped with its process.\n",
        )
        Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() + timedelta(hours=1))
        body = tab(admin_client, task)
        assert "attempt 1 on worker-a: stopped with its process" in body
        assert "lease renews by" in facts(admin_client, task)
        Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
        assert "lease expired" in facts(admin_client, task)

    def test_has_what_the_audit_log_has_of_the_task(self, admin_client: Client) -> None:
        task, other = make_task("mine"), make_task("other")
        for name, agent in ((task.public_id, task.agent), (other.public_id, task.agent)):
            audit.note(
                Action.TASK_CANCEL, name, scope=OwnerScope("", "alice", agent), actor=f"of-{name}"
            )
        audit.note(
            Action.TASK_CANCEL, "mine", scope=OwnerScope("", "", "another"), actor="of-another"
        )
        body = admin_client.get(url(task)).text
        assert "of-mine" in body
        assert "of-other" not in body
        assert "of-another" not in body

    def test_has_what_was_done_in_the_moment_the_task_was_made(self, admin_client: Client) -> None:
        """As accepting it is; SQLite's moments are texts, and those of the database are shorter than Python's."""
        task = make_task("mine")
        audit.note(
            Action.TASK_CANCEL, "mine", scope=OwnerScope("", "alice", task.agent), actor="of-mine"
        )
        then = Subquery(AuditEntry.objects.filter(object="mine").values("created_at"))
        Task.objects.filter(pk=task.pk).update(created_at=then)
        assert "of-mine" in admin_client.get(url(task)).text

    def test_cuts_what_others_tell_to_the_time_of_its_events(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = make_task()
        add_chunks(task, 399)
        Event.objects.filter(task=task, number__lte=200).update(created_at=at(0))
        Event.objects.filter(task=task, number__gt=200).update(created_at=at(100))
        run = add_run(task, RunStatus.RUNNING, started_at=at(-1))
        Run.objects.filter(pk=run.pk).update(created_at=at(-1))
        step = add_step(task, run, "early-step")
        type(step).objects.filter(name="early-step").update(created_at=at(-1))
        step = add_step(task, run, "late-step")
        type(step).objects.filter(name="late-step").update(created_at=at(50))
        config = make_config(task)
        for number, status in ((7, 501), (300, 502)):
            add_attempt(make_delivery(config, number=number, through=number), status)
        early, late = (tab(admin_client, task, f"?from={n}") for n in (1, 201))
        assert "early-step" in early
        assert "late-step" not in early
        assert ">501<" in early
        assert ">502<" not in early
        assert "early-step" not in late
        assert "late-step" in late
        assert ">502<" in late

    def test_says_what_there_is_more_of_than_it_tells(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sources, "MAX_COUNT", 2)
        task = make_task()
        run = add_run(task)
        for number in range(3):
            add_step(task, run, f"step-{number}")
        body = tab(admin_client, task)
        assert "more steps than fit" in body
        assert "step-0" not in body
        assert "step-2" in body

    def test_folds_thousands_of_pieces_and_reads_few_of_them(self, admin_client: Client) -> None:
        task = make_task()
        add_chunks(task, 1_000)
        body = admin_client.get(url(task)).text
        assert "101 pieces" in body
        assert "word1001" in body
        assert "word801 " not in body

    @pytest.mark.parametrize("ended", [False, thorough(True)])
    def test_asks_no_more_of_a_long_task_than_of_a_short_one(
        self, admin_client: Client, *, ended: bool
    ) -> None:
        def made(name: str, times: int) -> Task:
            task = make_task(name)
            config = make_config(task)
            for number in range(times):
                add_chunks(task, 30)
                add_artifact(task, f"artifact-{number}", "a", "x" * 20_000)
                add_status(task, TaskState.WORKING, f"said {number}" + "x" * 20_000)
                run = add_run(task, RunStatus.FAILED, error="Traceback")
                add_step(task, run, f"step-{number}")
                audit.note(Action.TASK_SEND, name, scope=OwnerScope("", "", "demo"))
                add_attempt(make_delivery(config, DeliveryStatus.DEAD, number=task.last_event))
            add_status(task, TaskState.COMPLETED if ended else TaskState.WORKING)
            return task

        few, many = made("short", 1), made("long", 8)
        counts = []
        for task in (few, many):
            for address in (url(task), url(task, "live/tab"), url(task, "live/top")):
                with CaptureQueriesContext(connection) as asked:
                    assert admin_client.get(address).status_code == 200
                counts.append(len(asked))
        assert counts[3:] == counts[:3]
        assert counts[0] <= 45
        assert counts[1] <= 18
        assert counts[2] <= 30


class TestTheHeader:
    def test_says_how_it_stands_whose_it_is_and_in_what_dialect_it_was_made(
        self, admin_client: Client
    ) -> None:
        task = make_task(state=TaskState.WORKING, owner="alice", dialect="v03")
        add_run(task, RunStatus.RUNNING, attempt=3, worker="worker-9")
        Task.objects.filter(pk=task.pk).update(created_at=timezone.now() - timedelta(minutes=3))
        head = admin_client.get(url(task, "live/top")).text
        for word in ("working", "alice", "demo", "3 min so far"):
            assert word in head
        for word in ("alice", "demo", "0.3 (v03)", "attempt 3 on worker-9"):
            assert word in facts(admin_client, task)

    def test_says_what_models_were_used_for(self, admin_client: Client) -> None:
        task = make_task()
        tokens = {"input_tokens": 30, "cached_tokens": 7, "output_tokens": 4}
        add_usage(task, "large <b>", requests=2, **tokens, cost="0.25", currency="USD")
        head = admin_client.get(url(task, "live/top")).text
        assert "2 model calls" in head
        assert "0.25 USD" in head
        whole = facts(admin_client, task)
        assert "Usage of large &lt;b&gt;" in whole
        assert "2 requests: 30 tokens in, 7 cached, 4 out, cost 0.25 USD" in whole

    def test_names_who_made_what_its_tenant_shares(self, admin_client: Client) -> None:
        task = make_task(owner="tenant-drawer")
        Task.objects.filter(pk=task.pk).update(created_by="carol")
        body = facts(admin_client, task)
        assert "carol" in body
        assert "all callers of its tenant" in body

    @rows(
        ("status", "says"),
        [(RunStatus.QUEUED, "queued in agents"), (RunStatus.DROPPED, "dropped"), (None, "no run")],
        within=rolled_back,
    )
    def test_says_who_works_on_it(
        self, admin_client: Client, status: RunStatus | None, says: str
    ) -> None:
        task = make_task()
        if status:
            add_run(task, status)
        assert says in facts(admin_client, task)

    def test_says_why_it_stands_as_it_does_until_it_has_ended(self, admin_client: Client) -> None:
        task = make_task()
        assert "Current status" in admin_client.get(url(task, "live/top")).text
        add_status(task, TaskState.COMPLETED)
        assert "Current status" not in admin_client.get(url(task)).text

    def test_counts_those_that_failed_alike_but_for_numbers(self, admin_client: Client) -> None:
        errors = (
            "ValueError: sum of 7",
            "ValueError: sum of 12",
            "KeyError: 7",
            "ValueError: sum of",
        )
        tasks = [make_task(f"task-{n}", state=TaskState.FAILED) for n in range(len(errors))]
        for task, error in zip(tasks, errors, strict=True):
            Task.objects.filter(pk=task.pk).update(status_text=error)
        assert "1 other failed alike" in admin_client.get(url(tasks[0])).text
        assert "failed alike" not in admin_client.get(url(tasks[2])).text

    def test_of_a_task_that_failed_without_an_exception_has_the_agents_words(
        self, admin_client: Client
    ) -> None:
        task = make_task(state=TaskState.FAILED)
        words = json.dumps({"parts": [{"text": "no <b>paper</b>"}]})
        Task.objects.filter(pk=task.pk).update(status_message=words)
        assert "<bdi>no &lt;b&gt;paper&lt;/b&gt;</bdi>" in admin_client.get(url(task)).text


class TestTheConversation:
    def test_is_that_of_the_task_and_has_the_form_of_its_question_instead_of_json(
        self, sign_in: SignIn
    ) -> None:
        task = make_task("mine", text="book a **room**")
        make_task("other", text="of another task")
        add_artifact(task, "plan <b>", "# Day 1")
        add_status(task, TaskState.INPUT_REQUIRED)
        form = {"type": "object", "properties": {"town": {"type": "string", "title": "Town"}}}
        parts = [{"text": "Where *to*?"}, {"data": {"form": form}}]
        about = {"messageId": "m", "role": "ROLE_AGENT", "extensions": [FORM], "parts": parts}
        Task.objects.filter(pk=task.pk).update(status_message=write(about).decode())
        bob = sign_in("view_task", "answer_task")
        upper = bob.get(url(task, "live/top")).text
        assert in_order(
            upper, "<strong>room</strong>", "plan &lt;b&gt;", "<h1>Day 1", "<em>to</em>", "Town"
        )
        assert "of another task" not in upper
        assert " tasks</span>" not in upper, "the answer goes to this task alone"
        assert "properties" not in upper
        User.objects.get().user_permissions.remove(Permission.objects.get(codename="answer_task"))
        assert "Town" not in bob.get(url(task, "live/top")).text


class TestTabs:
    def test_have_the_logs_and_the_audit_log_alone(self, admin_client: Client) -> None:
        task = make_task("mine")
        run = add_run(task)
        line = run_lines.RunLogLine(run.pk, 1, NOW, logging.INFO, "agents.demo", "paper <b>low")
        run_lines.write([line])
        scope = OwnerScope("", "alice", task.agent)
        audit.note(Action.TASK_CANCEL, "mine", scope=scope, actor="of-mine")
        found = {name: tab(admin_client, task, f"?tab={name}") for name in ("logs", "audit")}
        assert ["paper &lt;b&gt;low" in body for body in found.values()] == [True, False]
        assert ["of-mine" in body for body in found.values()] == [False, True]

    def test_of_an_unknown_name_is_the_timeline(self, admin_client: Client) -> None:
        task = make_task()
        assert 'id="event-1"' in tab(admin_client, task, "?tab=<script>")


class TestFollowing:
    def test_both_parts_ask_for_themselves_until_the_end(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.WORKING)
        assert admin_client.get(url(task)).text.count("every 2s") == 2
        add_status(task, TaskState.COMPLETED, "the end")
        for part in ("live/top", "live/tab"):
            body = admin_client.get(url(task, part)).text
            assert "every 2s" in body, "log lines may come late"
        Task.objects.filter(pk=task.pk).update(status_at=at(-9))
        for part in ("change", "live/top", "live/tab"):
            assert "hx-get" not in admin_client.get(url(task, part)).text

    def test_a_tab_that_has_not_changed_is_not_sent(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.WORKING)
        first = admin_client.get(url(task, "live/tab"))
        found = re.search(r"mark=(\w+)", first.text)
        assert found is not None
        again = admin_client.get(url(task, "live/tab"), {"mark": found[1]})
        assert [again.status_code, again.content] == [204, b""]
        add_status(task, TaskState.WORKING, "half")
        assert "half" in admin_client.get(url(task, "live/tab"), {"mark": found[1]}).text

    def test_what_the_url_says_is_asked_for_again(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.WORKING)
        body = admin_client.get(url(task) + "?tab=logs&bar=x&next=//evil.example").text
        assert 'live/tab/?mark=&amp;tab=logs"' in body
        assert '&amp;tab=logs&amp;bar=x"' in body
        assert "evil.example" not in body

    def test_the_newest_events_begin_at_a_round_number(self, admin_client: Client) -> None:
        """So that the lines of a page that follows a task stay."""
        task = make_task()
        add_chunks(task, 349)
        shown = admin_client.get(url(task)).context["window"]
        assert (shown.first, shown.last, shown.older, shown.newer) == (201, 350, 1, None)

    @rows("piece", ["live/top", "live/tab"], within=rolled_back)
    def test_whoever_is_signed_out_is_told_so_and_not_sent_to_the_login(
        self, client: Client, piece: str
    ) -> None:
        answer = client.get(url(make_task(), piece))
        assert answer.status_code == 404
        assert "you are signed out" in answer.text
        assert "demo" not in answer.text


@pytest.fixture
def acme() -> Task:
    """A task of another tenant's, with everything that has a page."""
    task = make_task("acme-task", state=TaskState.WORKING)
    Task.objects.filter(pk=task.pk).update(tenant="acme")
    Context.objects.filter(pk=task.context_id).update(tenant="acme")
    return task


PIECES = ("change", "live/top", "live/tab", "json", "parts/event/1/0")


class TestWhoSeesWhat:
    @rows("piece", PIECES, within=rolled_back)
    def test_a_task_of_another_tenant_is_not_there(
        self, sign_in: SignIn, acme: Task, piece: str
    ) -> None:
        bob = sign_in("view_task", "view_context")
        assert bob.get(url(acme, piece)).status_code == 404
        talk = f"/admin/a2a_tasks/context/{acme.context_id}/conversation/"
        assert bob.get(talk).status_code == 404
        User.objects.get().groups.add(Group.objects.create(name="tenant:acme"))
        assert bob.get(url(acme, piece)).status_code == 200
        assert bob.get(talk).status_code == 200

    @rows("piece", PIECES[1:], within=rolled_back)
    def test_who_may_not_view_tasks_sees_no_piece_of_one(self, sign_in: SignIn, piece: str) -> None:
        task, bob = make_task(), sign_in("view_context")
        assert bob.get(url(task, piece)).status_code == 404
        talk = f"/admin/a2a_tasks/context/{task.context_id}/conversation/"
        assert bob.get(talk).status_code == 403

    def test_each_source_is_for_those_who_may_view_its_own_pages(self, sign_in: SignIn) -> None:
        task = make_task("seen", state=TaskState.WORKING)
        add_step(task, add_run(task, RunStatus.RUNNING, worker="worker-7"), "the-step")
        audit.note(Action.TASK_SEND, "seen", scope=OwnerScope("", "", "demo"), actor="who-sent")
        add_attempt(make_delivery(make_config(task), number=1, through=1), 418)
        bob = sign_in("view_task")
        rights = {
            "view_run": ("worker-7", "the-step"),
            "view_auditentry": ("who-sent",),
            "view_delivery": ("answered 418",),  # the number alone may be part of another
        }
        body = tab(bob, task)
        assert not any(word in body for words in rights.values() for word in words)
        for right, words in rights.items():
            User.objects.get().user_permissions.set(
                Permission.objects.filter(codename__in=["view_task", right])
            )
            body = tab(bob, task)
            assert all(word in body for word in words), right


@pytest.mark.django_db
class TestRunningAgain:
    """The store works on connections of its own, so these rows have to be committed."""

    def press(self, client: Client, task: Task) -> str:
        """Press the button on the page of the task; where it leads, and what is said there."""
        page = client.get(url(task))
        said = {"nonce": page.context["again"]}
        before, asks = Task.objects.count(), client.post(url(task, "run-again"), said)
        assert asks.context["kept"] == [*said.items(), ("confirmed", "yes")]
        assert Task.objects.count() == before, "nothing is done before somebody says yes"
        answer = client.post(url(task, "run-again"), dict(asks.context["kept"]), follow=True)
        place: str = answer.request["PATH_INFO"]
        self.said = " ".join(str(message) for message in answer.context["messages"])
        return place

    def test_leads_to_a_new_task_of_the_same_owner(self, sign_in: SignIn) -> None:
        task = make_task("the-task", text="please", state=TaskState.FAILED)
        add_run(task, RunStatus.FAILED)
        bob = sign_in("view_task", "run_again_task")
        place = self.press(bob, task)
        new = Task.objects.get(predecessor=None, pk__gt=task.pk)
        assert place == url(new)
        assert f"Run again as {new.public_id}." in self.said
        assert [new.owner, new.context_id, new.state] == [
            "alice",
            task.context_id,
            TaskState.SUBMITTED,
        ]
        assert new.messages.get().body.count("please") == 1
        assert LogEntry.objects.get().object_id == str(task.pk)
        assert AuditEntry.objects.filter(object=new.public_id, actor__startswith="staff:").exists()

    def test_says_why_it_cannot_be(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.FAILED, agent="an-agent-that-is-gone")
        assert self.press(admin_client, task) == url(task)
        assert self.said
        add_run(task, RunStatus.FAILED)
        assert self.press(admin_client, task) == url(task)
        assert "Not run again. The agent an-agent-that-is-gone is not on this host" in self.said
        assert Task.objects.count() == 1

    def test_needs_the_permission_and_a_task_that_has_ended(self, sign_in: SignIn) -> None:
        task, bob = make_task(state=TaskState.FAILED), sign_in("view_task")
        assert "Run again" not in bob.get(url(task)).text
        assert bob.post(url(task, "run-again")).status_code == 403
        User.objects.get().user_permissions.add(Permission.objects.get(codename="run_again_task"))
        assert "Run again" in bob.get(url(task)).text
        assert "Run again" not in bob.get(url(make_task("goes-on"))).text
        assert bob.get(url(task, "run-again")).status_code == 405


def test_deliveries_of_a_piece_of_a_long_task_are_found_along_an_index() -> None:
    task = make_task()
    make_delivery(make_config(task), number=5, through=5)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("set local enable_seqscan = off")
    plan = Delivery.objects.filter(task_id=task.pk, number__range=(1, 200)).explain()
    assert "delivery_of_task" in plan


class TestTheNextTask:
    def test_is_that_of_the_list_from_which_one_came_on_every_tab(
        self, admin_client: Client
    ) -> None:
        first, other, middle, _, last = (
            make_task(name, agent=agent)
            for name, agent in zip("abcde", ("demo", "x", "demo", "x", "demo"), strict=True)
        )
        came = "_changelist_filters=agent%3Ddemo"
        for query in (f"?{came}", f"?tab=logs&{came}"):
            page = admin_client.get(url(middle) + query)
            assert page.context["neighbours"] == {"above": last.pk, "below": first.pk}
            assert f'rel="prev" href="{url(last)}?{came}"' in page.text
            assert f'href="{url(middle)}?tab=json&amp;{came}#a2a-tabs"' in page.text
            assert 'id="a2a-back" href="/admin/a2a_tasks/task/?agent=demo"' in page.text
        ends = admin_client.get(f"{url(first)}?{came}").context["neighbours"]
        assert ends == {"above": middle.pk, "below": None}
        assert admin_client.get(url(other)).context["neighbours"]["below"] == first.pk
        assert (
            f'href="{url(middle)}?{came}"'
            in admin_client.get("/admin/a2a_tasks/task/?agent=demo").text
        )
        odd = admin_client.get(f"{url(middle)}?_changelist_filters=state%3Dbogus")
        assert odd.context["neighbours"]["below"] == other.pk

    def test_is_one_that_the_user_sees(self, sign_in: SignIn, acme: Task) -> None:
        mine = make_task()
        assert acme.pk < mine.pk
        page = sign_in("view_task").get(url(mine))
        assert page.context["neighbours"] == {"above": None, "below": None}
