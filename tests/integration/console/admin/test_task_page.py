"""The page of a task: a header and one timeline of everything, both of which follow the task; cut by what the user may see."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.db.models import Subquery
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_console.admin.tasks import sources, timeline_page
from a2a_push.models import Delivery, DeliveryStatus
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import AuditEntry, Context, Event, Run, RunStatus, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, run_lines
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


def timeline(client: Client, task: Task, query: str = "") -> str:
    body = client.get(url(task) + query).text
    return body[body.index('id="a2a-timeline"') : body.index('id="a2a-artifacts"')]


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
        body = timeline(admin_client, task)
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

    def test_tells_of_tools(self, admin_client: Client) -> None:
        task = make_task("the-task")
        for number, about in enumerate(({"toolCall": {"id": "call-7"}}, {"toolResult": {}}), 2):
            message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"data": about}]}
            body = write({"status": {"state": "TASK_STATE_WORKING", "message": message}}).decode()
            Event.objects.create(task=task, number=number, kind=EventKind.TOOL, body=body)
        Task.objects.filter(pk=task.pk).update(last_event=3)
        body = timeline(admin_client, task)
        assert in_order(body, "call of a tool", "call-7", "result of a tool")

    def test_has_the_trace_of_an_attempt_that_died_also_if_the_last_one_ended_well(
        self, admin_client: Client
    ) -> None:
        death = "Attempt 1 on worker-a was stopped with its process.\n"
        about = {"worker": "worker-b", "ended_at": timezone.now()}
        for error in (death, f"Traceback: no paper\n{death}"):
            task = make_task(error)
            add_run(task, RunStatus.ENDED, attempt=2, error=error, **about)
            body = timeline(admin_client, task)
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
        body = timeline(admin_client, task)
        assert "attempt 1 on worker-a: stopped with its process" in body
        assert "lease renews by" in admin_client.get(url(task)).text
        Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
        assert "lease expired" in admin_client.get(url(task)).text

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
        early, late = (timeline(admin_client, task, f"?from={n}") for n in (1, 201))
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
        body = admin_client.get(url(task)).text
        assert "more steps than fit" in body
        assert "step-0" not in body
        assert "step-2" in body

    def test_folds_thousands_of_pieces_and_reads_few_of_them(self, admin_client: Client) -> None:
        task = make_task()
        add_chunks(task, 1_000)
        body = admin_client.get(url(task)).text
        assert "200 pieces" in body
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
            for address in (url(task), url(task, "tail") + "?after=1", url(task, "header")):
                with CaptureQueriesContext(connection) as asked:
                    assert admin_client.get(address).status_code == 200
                counts.append(len(asked))
        assert counts[3:] == counts[:3]
        assert counts[0] <= 30
        assert counts[1] <= 18
        assert counts[2] <= 12


class TestTheHeader:
    def test_says_how_it_stands_whose_it_is_and_in_what_dialect_it_was_made(
        self, admin_client: Client
    ) -> None:
        task = make_task(state=TaskState.WORKING, owner="alice", dialect="v03")
        add_run(task, RunStatus.RUNNING, attempt=3, worker="worker-9")
        Task.objects.filter(pk=task.pk).update(created_at=timezone.now() - timedelta(minutes=3))
        body = admin_client.get(url(task)).text
        head = body[body.index('id="a2a-header"') : body.index('id="a2a-timeline"')]
        for word in ("working", "alice", "demo", "0.3 (v03)", "attempt 3 on worker-9", "so far"):
            assert word in head

    def test_says_what_models_were_used_for(self, admin_client: Client) -> None:
        task = make_task()
        tokens = {"input_tokens": 30, "cached_tokens": 7, "output_tokens": 4}
        add_usage(task, "large <b>", requests=2, **tokens, cost="0.25", currency="USD")
        head = admin_client.get(url(task, "header")).text
        assert "Usage of large &lt;b&gt;" in head
        assert "2 requests: 30 tokens in, 7 cached, 4 out, cost 0.25 USD" in head

    def test_names_who_made_what_its_tenant_shares(self, admin_client: Client) -> None:
        task = make_task(owner="tenant-drawer")
        Task.objects.filter(pk=task.pk).update(maker="carol")
        body = admin_client.get(url(task)).text
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
        assert says in admin_client.get(url(task)).text

    def test_says_why_it_stands_as_it_does_until_it_has_ended(self, admin_client: Client) -> None:
        task = make_task()
        assert "Current status" in admin_client.get(url(task, "header")).text
        add_status(task, TaskState.COMPLETED)
        assert "Why it stands" not in admin_client.get(url(task)).text

    def test_does_not_show_again_what_it_has_shown(self, admin_client: Client) -> None:
        task = make_task()
        Task.objects.filter(pk=task.pk).update(created_at=timezone.now() - timedelta(days=3))
        first = admin_client.get(url(task, "header"))
        assert "every 2s" in first.text
        mark = first.context["header"].mark
        again = admin_client.get(url(task, "header"), {"mark": mark})
        assert [again.status_code, again.content] == [204, b""]
        add_status(task, TaskState.COMPLETED)
        last = admin_client.get(url(task, "header"), {"mark": mark})
        assert last.status_code == 200
        assert "completed" in last.text
        assert "hx-get" not in last.text
        assert "Cancel task" not in last.text


class TestFollowing:
    def follow(
        self, client: Client, task: Task, tail: timeline_page.Tail | None
    ) -> timeline_page.Story | None:
        """Ask for what the browser asks for; None = nothing new."""
        assert tail is not None
        query = f"?after={tail.after}&mark={tail.mark}&since=1"
        answer = client.get(url(task, "tail") + query)
        assert answer.status_code in {200, 204}
        return answer.context["story"] if answer.status_code == 200 else None

    @pytest.fixture(autouse=True)
    def nothing_is_late(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What happened is settled at once; in the test of what comes late, not before its end."""
        late = "late" in request.node.name
        monkeypatch.setattr(timeline_page, "LATE", timedelta(hours=1) if late else timedelta(0))

    def test_what_is_told_late_is_shown_in_its_place_also_after_the_end(
        self, admin_client: Client
    ) -> None:
        task = make_task(state=TaskState.WORKING)
        run = add_run(task, RunStatus.RUNNING)
        tail = admin_client.get(url(task)).context["tail"]
        before = timezone.now() - timedelta(milliseconds=2)  # the protocol's times have no more
        add_status(task, TaskState.COMPLETED, "done")
        told = self.follow(admin_client, task, tail)
        assert told is not None
        line = run_lines.RunLogLine(
            run.pk, 1, before, logging.INFO, "agents.demo", "said-before-the-end"
        )
        run_lines.write([line])
        told = self.follow(admin_client, task, told.tail)
        assert told is not None
        assert told.tail is not None
        assert told.tail.html.index("said-before-the-end") < told.tail.html.index(">done<")

    def test_the_count_of_events_and_the_artifacts_follow_too(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.WORKING)
        tail = admin_client.get(url(task)).context["tail"]
        query = f"?after={tail.after}&mark={tail.mark}&since=1"
        add_status(task, TaskState.WORKING, "half")
        answer = admin_client.get(url(task, "tail") + query).text
        events = Task.objects.get().last_event
        count = f'id="a2a-count" hx-swap-oob="true">Events 1 to {events} of {events}</span>'
        assert count in answer
        assert "a2a-artifacts-now" not in answer
        add_artifact(task, "report", "as it is now")
        answer = admin_client.get(url(task, "tail") + query).text
        assert 'id="a2a-artifacts-now" aria-labelledby="a2a-artifacts" hx-swap-oob="true"' in answer
        assert answer.count("as it is now") > 1

    def test_a_task_that_has_ended_is_not_followed(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.COMPLETED)
        assert "hx-get" not in admin_client.get(url(task)).text

    def test_an_older_window_is_not_followed(self, admin_client: Client) -> None:
        task = make_task()
        add_chunks(task, 300)
        assert "every 1s" not in admin_client.get(url(task) + "?from=1").text
        assert "every 1s" in admin_client.get(url(task)).text

    def test_nothing_new_is_nothing_sent(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.WORKING)
        add_run(task, RunStatus.RUNNING)
        tail = admin_client.get(url(task)).context["tail"]
        assert self.follow(admin_client, task, tail) is None

    def test_new_events_are_told_once_and_stay(self, admin_client: Client) -> None:
        task = make_task()
        tail = admin_client.get(url(task)).context["tail"]
        assert tail.after == 1
        add_status(task, TaskState.WORKING, "first")
        add_status(task, TaskState.WORKING, "second")
        told = self.follow(admin_client, task, tail)
        assert told is not None
        assert [line.content.first for line in told.lines] == [2, 3]
        assert self.follow(admin_client, task, told.tail) is None

    def test_an_artifact_that_grows_is_one_line_that_is_told_anew(
        self, admin_client: Client
    ) -> None:
        task = make_task()
        add_chunks(task, 3)
        tail = admin_client.get(url(task)).context["tail"]
        assert [tail.after, tail.lines[0].content.pieces] == [1, 3]
        add_chunks(task, 2)
        told = self.follow(admin_client, task, tail)
        assert told is not None
        assert told.tail is not None
        assert [told.tail.after, told.tail.lines[0].content.pieces] == [1, 5]
        add_chunks(task, timeline_page.PIECES)
        told = self.follow(admin_client, task, told.tail)
        assert told is not None
        assert told.tail is not None
        assert told.lines[0].content.pieces == 5 + timeline_page.PIECES
        assert told.tail.after == task.last_event

    def test_what_others_tell_later_is_told(self, admin_client: Client) -> None:
        task = make_task()
        tail = admin_client.get(url(task)).context["tail"]
        run = add_run(task, RunStatus.RUNNING)
        told = self.follow(admin_client, task, tail)
        assert told is not None
        assert told.tail is not None
        assert told.tail.lines
        assert self.follow(admin_client, task, told.tail) is None
        add_step(task, run, "the-step")
        again = self.follow(admin_client, task, told.tail)
        assert again is not None

    def test_the_end_is_told_and_then_it_stops(self, admin_client: Client) -> None:
        task = make_task()
        tail = admin_client.get(url(task)).context["tail"]
        add_status(task, TaskState.FAILED, "no paper")
        answer = admin_client.get(url(task, "tail"), {"after": tail.after, "since": 1})
        assert "no paper" in answer.text
        assert "The task has ended." in answer.text
        assert "hx-get" not in answer.text

    def test_what_came_too_quickly_is_left_out_and_linked_to(self, admin_client: Client) -> None:
        task = make_task()
        tail = admin_client.get(url(task)).context["tail"]
        add_chunks(task, 1_000)
        answer = admin_client.get(url(task, "tail"), {"after": tail.after, "since": 1})
        assert "800 events" in answer.text
        assert 'href="?from=2#a2a-timeline"' in answer.text
        assert "word1001" in answer.text

    def test_a_page_that_has_grown_long_begins_anew(self, admin_client: Client) -> None:
        task = make_task()
        add_chunks(task, timeline_page.LIVE + 1)
        answer = admin_client.get(url(task, "tail"), {"after": timeline_page.LIVE, "since": 1})
        assert answer["HX-Refresh"] == "true"

    @rows("after", ["x", "9" * 30, "²", "99"], within=rolled_back)
    def test_forgives_a_wrong_number(self, admin_client: Client, after: str) -> None:
        task = make_task(state=TaskState.WORKING)
        asked = {"after": after, "since": after}
        assert admin_client.get(url(task, "tail"), asked).status_code == 200

    @rows("piece", ["header", "tail"], within=rolled_back)
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


PIECES = ("change", "header", "tail", "json", "parts/event/1/0")


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
        body = timeline(bob, task)
        assert not any(word in body for words in rights.values() for word in words)
        for right, words in rights.items():
            User.objects.get().user_permissions.set(
                Permission.objects.filter(codename__in=["view_task", right])
            )
            body = timeline(bob, task)
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
        assert f"Run again: 1, as {new.public_id}." in self.said
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
        assert "Not run again: 1. The agent an-agent-that-is-gone is not on this host" in self.said
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
