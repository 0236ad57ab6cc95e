"""Inbox: who sees what, who may have it, and what becomes of an answer given from the page."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from a2a_console.admin.tasks import queue
from a2a_console.queue.waiting import list_waiting
from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.models import Assignment, AuditEntry, HandedSecret, Message, Run, Task
from a2a_tasks.protocol.forms import FORM
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import handed_secrets
from a2a_tasks.store.tenancy import within
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_run, make_task, said
from tests.support.rows import rolled_back, rows
from tests.support.store.world import held

pytestmark = pytest.mark.django_db

QUEUE = "/admin/a2a_tasks/waiting/"
ANSWER = "answer_task"


@pytest.fixture(autouse=True)
def elsewhere(settings: Settings) -> None:
    """Nobody runs agents here."""
    settings.A2A_RUNS = "celery"


def waits(
    name: str = "task-1",
    text: str = "Which colour?",
    *,
    state: TaskState = TaskState.INPUT_REQUIRED,
    minutes: int = 5,
    tenant: str = "",
    **about: Any,
) -> Task:
    """A task that waits for so long."""
    task = make_task(name, state=state, **about)
    add_run(task, request='{"principal":"alice"}')
    columns = {"status_at": timezone.now() - timedelta(minutes=minutes), "tenant": tenant}
    Task.objects.filter(pk=task.pk).update(status_message=json.dumps(said(text)), **columns)
    task.refresh_from_db()
    return task


def waits_for_a_secret(name: str = "task-s") -> Task:
    """A task whose agent asked to be handed a token."""
    run = held(name)
    assert handed_secrets.ask(run, ["token"], "Why not?")
    Task.objects.filter(pk=run.task).update(state=TaskState.AUTH_REQUIRED, run_token="")
    Run.objects.filter(pk=run.key).update(status="ended", token="", lease_until=None)
    return Task.objects.get(pk=run.task)


def staff(name: str, *permissions: str, groups: tuple[str, ...] = ()) -> User:
    """Somebody of the staff."""
    user = User.objects.create_user(name, password=name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return user


def do(browser: Client, wish: str, *tasks: Task, **said: str) -> list[str]:
    """Press a button of the queue; what the next page tells."""
    form = {"do": wish, "task": [task.pk for task in tasks], **said}
    answer = browser.post(f"{QUEUE}assign/", form, follow=True)
    assert answer.status_code == 200
    return [str(message) for message in answer.context["messages"]]


def answer(browser: Client, task: Task, text: str = "blue", **said: Any) -> Any:
    form = {"text": text, "event": task.last_event, **said}
    return browser.post(f"{QUEUE}{task.pk}/answer/", form)


def shown(browser: Client, query: str = "") -> list[str]:
    """The ids of the tasks on the page, in order."""
    page = browser.get(QUEUE + query)
    assert page.status_code == 200
    return [line.task.public_id for line in page.context["page"].lines]


def test_an_answer_from_the_page_of_the_task_leads_back_to_it(sign_in: SignIn) -> None:
    task = waits()
    browser = sign_in("view_task", ANSWER)
    page = f"/admin/a2a_tasks/task/{task.pk}/change/"
    assert '<input type="hidden" name="back" value="task">' in browser.get(page).text
    assert answer(browser, task, back="task")["Location"] == page
    asks = waits("secret", state=TaskState.AUTH_REQUIRED)
    body = browser.get(f"/admin/a2a_tasks/task/{asks.pk}/change/").text
    assert "Do not answer with a secret" in body


class TestTheQueue:
    def test_it_shows_what_waits_oldest_first_and_nothing_else(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task")
        waits("young", minutes=1)
        waits("old", minutes=90, state=TaskState.AUTH_REQUIRED)
        make_task("at-work", state=TaskState.WORKING)
        make_task("over", state=TaskState.COMPLETED)
        assert shown(browser) == ["old", "young"]
        text = browser.get(QUEUE).content.decode()
        assert "1 h 30 min" in text
        assert "Which colour?" in text
        assert 'name="text"' not in text  # who may only look has no form

    def test_what_strangers_wrote_is_text(self, sign_in: SignIn) -> None:
        waits(text="<script>alert(1)</script>", owner="<b>eve</b>")
        text = sign_in("view_task", ANSWER).get(QUEUE).content.decode()
        assert "<script>alert" not in text
        assert "<b>eve</b>" not in text
        assert "&lt;script&gt;alert(1)" in text

    def test_it_names_keys_and_leads_to_their_tasks(self, sign_in: SignIn) -> None:
        key = principal_of(issue("acme-bot").row)
        waits(owner=key)
        text = sign_in("view_task", ANSWER).get(QUEUE).content.decode()
        assert f'title="{key}">acme-bot</a>' in text

    def test_it_is_narrowed_by_whose_agent_and_kind(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task", ANSWER)
        waits("mine")
        waits("theirs", agent="tables")
        waits("free", state=TaskState.AUTH_REQUIRED)
        do(browser, "take", Task.objects.get(public_id="mine"))
        carol = staff("carol", ANSWER)
        Assignment.objects.create(task=Task.objects.get(public_id="theirs"), user=carol)
        assert shown(browser, "?who=mine") == ["mine"]
        assert shown(browser, "?who=free") == ["free"]
        assert shown(browser, "?agent=tables") == ["theirs"]
        assert shown(browser, "?kind=authorization") == ["free"]
        assert shown(browser, "?who=nonsense&kind=nonsense") == ["mine", "theirs", "free"]

    def test_pages_follow_each_other_without_gap_or_repetition(
        self, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue, "LINES", 2)
        browser = sign_in("view_task")
        same = timezone.now()
        for number in range(5):
            waits(f"task-{number}")
        Task.objects.update(status_at=same)
        seen: list[str] = []
        query = ""
        while True:
            page = browser.get(QUEUE + query).context["page"]
            seen += [line.task.public_id for line in page.lines]
            if not page.following:
                break
            query = page.following
        assert seen == [f"task-{number}" for number in range(5)]

    @rows(
        "place",
        [
            "x",
            "2026-01-01_5",
            "9999-99-99T00:00:00Z_1",
            "0001-01-01T00:00:00+14:00_1",
            "9999-12-31T23:59:59-14:00_1",
            "_",
            "2026-01-01T00:00:00+00:00_" + "9" * 30,
        ],
        within=rolled_back,
    )
    def test_a_place_that_is_none_is_the_beginning(self, place: str, sign_in: SignIn) -> None:
        browser = sign_in("view_task")
        waits()
        assert shown(browser, f"?after={place}") == ["task-1"]

    def test_a_tenants_staff_sees_its_own(self, client: Client) -> None:
        user = staff("bob", "view_task", ANSWER, groups=("tenant:acme",))
        client.force_login(user)
        waits("theirs", tenant="other")
        below = waits("below", tenant="acme/berlin")
        mine = waits("mine", tenant="acme", minutes=1)
        assert shown(client) == ["below", "mine"]
        theirs = Task.objects.get(public_id="theirs")
        assert answer(client, theirs).status_code == 404
        assert do(client, "take", theirs, mine, below)[0] == "Claimed: 2."
        assert not Assignment.objects.filter(task=theirs).exists()

    def test_it_is_few_queries_however_many_wait(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task", ANSWER)
        carol = staff("carol", ANSWER)
        counts = []
        for number in range(20):
            task = waits(f"task-{number}")
            Assignment.objects.create(task=task, user=carol)
            if number in {0, 19}:
                browser.get(QUEUE)
                with CaptureQueriesContext(connection) as looked:
                    browser.get(QUEUE)
                counts.append(len(looked))
        assert counts[0] == counts[1] <= 24

    def test_it_is_read_along_its_index(self, sign_in: SignIn) -> None:
        rows = queue.InboxQuery().rows(User(is_superuser=True, is_active=True))
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("set enable_seqscan = off; set enable_sort = off")
        assert "task_inbox" in rows[:26].explain() or connection.vendor == "sqlite"

    @pytest.mark.backend("stack")
    @pytest.mark.parametrize("kind", ["", "authorization"])
    def test_those_of_other_tenants_and_states_are_passed_over_in_it(self, kind: str) -> None:
        """The number beside Inbox is counted with each look, also for users of whose tenant nothing waits."""
        counted = list_waiting(kind).filter(within({"acme"})).values("pk")[:1000]
        with connection.cursor() as cursor:
            cursor.execute("set local enable_seqscan = off; set local enable_bitmapscan = off")
        assert "Index Only Scan using task_inbox" in counted.explain()

    def test_nobody_without_permission_sees_it(self, sign_in: SignIn) -> None:
        browser = sign_in("view_context")
        task = waits()
        assert browser.get(QUEUE).status_code == 403
        assert browser.get(f"{QUEUE}{task.pk}/change/").status_code == 403
        assert answer(browser, task).status_code == 403
        assert browser.post(f"{QUEUE}assign/", {"do": "take", "task": task.pk}).status_code == 403
        assert browser.post(f"{QUEUE}{task.pk}/link/").status_code == 403

    def test_anothers_row_is_not_there(self, client: Client) -> None:
        client.force_login(staff("bob", "view_task", ANSWER, groups=("tenant:acme",)))
        theirs = waits("theirs", tenant="globex")
        for page in ("change", "history", "delete", "answer"):
            answers = [client.get(f"{QUEUE}{key}/{page}/") for key in (theirs.pk, theirs.pk + 99)]
            assert [found.status_code for found in answers] == [404, 404]
            assert answers[0].content == answers[1].content
        assert client.post(f"{QUEUE}{theirs.pk}/link/").status_code == 404

    def test_a_row_of_it_leads_to_the_page_of_the_task(self, sign_in: SignIn) -> None:
        task = waits()
        browser = sign_in("view_task")
        for page in ("change", "history"):
            found = browser.get(f"{QUEUE}{task.pk}/{page}/")
            assert found["Location"] == f"/admin/a2a_tasks/task/{task.pk}/change/"


class TestGiving:
    def test_it_is_taken_given_and_released_and_all_of_it_written_down(
        self, sign_in: SignIn
    ) -> None:
        browser = sign_in("view_task", ANSWER)
        carol = staff("carol", ANSWER)
        task = waits()
        assert do(browser, "take", task) == ["Claimed: 1."]
        bob = User.objects.get(username="bob")
        assert Assignment.objects.get().user == bob
        assert do(browser, "give", task, to="carol") == ["Assigned: 1."]
        assert Assignment.objects.get().user == carol
        assert do(browser, "release", task) == ["Unassigned: 1."]
        assert not Assignment.objects.exists()
        entries = AuditEntry.objects.filter(action__startswith="task.").order_by("pk")
        told = list(entries.values_list("actor", "action", "object", "detail"))
        who = f"staff:{bob.pk}"
        assert told == [
            (who, "task.assign", "task-1", f'{{"to":"user:{bob.pk}"}}'),
            (who, "task.assign", "task-1", f'{{"to":"user:{carol.pk}"}}'),
            (who, "task.release", "task-1", ""),
        ]

    def test_what_somebody_else_has_taken_is_not_taken_from_him(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task", ANSWER)
        task = waits()
        Assignment.objects.create(task=task, user=staff("carol", ANSWER))
        told = do(browser, "take", task)
        assert told[0] == "Claimed: 0."
        assert "assigned to another person" in told[1]

    def test_it_is_given_only_to_who_may_have_it(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task", ANSWER, "see_all_tenants")
        task = waits(tenant="acme")
        staff("viewer", "view_task", groups=("tenant:acme",))
        staff("foreign", ANSWER, groups=("tenant:other",))
        User.objects.create_user("client", password="x")
        for name in ("viewer", "foreign", "client", "nobody", ""):
            told = do(browser, "give", task, to=name)
            assert "not among the staff" in told[1]
        staff("theirs", ANSWER, groups=("tenant:acme",))
        assert do(browser, "give", task, to="theirs") == ["Assigned: 1."]

    def test_names_of_other_tenants_staff_are_not_offered(self, client: Client) -> None:
        staff("foreign", ANSWER, groups=("tenant:other",))
        staff("colleague", ANSWER, groups=("tenant:acme",))
        client.force_login(staff("bob", "view_task", ANSWER, groups=("tenant:acme",)))
        waits(tenant="acme")
        assert client.get(QUEUE).context["people"] == ["bob", "colleague"]

    def test_many_are_given_at_once(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task", ANSWER)
        tasks = [waits(f"task-{number}") for number in range(3)]
        over = make_task("over", state=TaskState.COMPLETED)
        told = do(browser, "take", *tasks, over)
        assert told[0] == "Claimed: 3."
        assert "The task is completed" in told[1]

    def test_it_stays_with_its_person_while_it_works_and_is_not_shown(
        self, sign_in: SignIn
    ) -> None:
        browser = sign_in("view_task", ANSWER)
        task = waits()
        do(browser, "take", task)
        answer(browser, task)
        assert shown(browser, "?who=mine") == []
        Task.objects.update(state=TaskState.INPUT_REQUIRED)
        assert shown(browser, "?who=mine") == ["task-1"]


class TestAnswering:
    @pytest.fixture
    def bob(self, sign_in: SignIn) -> Client:
        return sign_in("view_task", ANSWER)

    def test_the_task_goes_on_and_the_queue_says_so(self, bob: Client) -> None:
        task = waits()
        sent = answer(bob, task, back="who=free&agent=demo&evil=1")
        assert sent["Location"] == f"{QUEUE}?who=free&agent=demo"
        told = bob.get(sent["Location"]).context["messages"]
        assert [str(message) for message in told] == ["Answered: task-1."]
        assert Task.objects.get().state == TaskState.WORKING
        entry = AuditEntry.objects.get(action="task.answer")
        assert entry.actor == f"staff:{User.objects.get().pk}"

    def test_json_and_files_are_sent_with_it(self, bob: Client) -> None:
        task = waits()
        sent = SimpleUploadedFile("a.txt", b"file", content_type="text/plain")
        assert answer(bob, task, data='{"n": 1}', files=[sent]).status_code == 302
        parts = json.loads(Message.objects.latest("number").body)["parts"]
        assert parts[1] == {"data": {"n": 1}}
        assert parts[2]["filename"] == "a.txt"

    @rows(
        ("said", "told"),
        [
            ({"text": " "}, "There is nothing to send"),
            ({"data": "{"}, "is not JSON"),
            ({"event": "1"}, "asks something else now"),
            ({"event": "x"}, "asks something else now"),
        ],
        within=rolled_back,
    )
    def test_what_could_not_be_sent_comes_back_with_the_reason(
        self, said: dict[str, str], told: str, bob: Client
    ) -> None:
        task = waits()
        page = answer(bob, task, **{"text": "<i>long words</i>", **said})
        assert page.status_code == 400
        text = page.content.decode()
        assert told in text
        assert said.get("text", "&lt;i&gt;long words&lt;/i&gt;") in text
        assert Task.objects.get().state == TaskState.INPUT_REQUIRED

    def test_there_is_a_page_to_answer_on(self, bob: Client) -> None:
        page = bob.get(f"{QUEUE}{waits().pk}/answer/")
        assert "Which colour?" in page.content.decode()

    def test_it_needs_the_token_of_the_form(self, bob: Client) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = bob.cookies
        task = waits()
        assert answer(strict, task).status_code == 403
        assert strict.post(f"{QUEUE}assign/", {"do": "take", "task": task.pk}).status_code == 403


class TestLinks:
    def test_a_fresh_link_is_shown_once_and_works(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task", ANSWER)
        task = waits_for_a_secret()
        before = HandedSecret.objects.get().token_hash
        text = browser.get(QUEUE).content.decode()
        assert "Requested secrets" in text
        assert "Why not?" in text
        assert "/handover/" not in text  # what was given to the client is not shown to the staff
        page = browser.post(f"{QUEUE}{task.pk}/link/")
        assert "no-store" in page["Cache-Control"]
        found = re.search(r'value="(http://testserver/handover/[\w-]{43})"', page.content.decode())
        assert found
        assert HandedSecret.objects.get().token_hash != before
        assert Client().get(found[1]).status_code == 200
        assert found[1] not in browser.get(QUEUE).content.decode()
        assert AuditEntry.objects.filter(action="secret.link").count() == 1

    def test_a_link_that_has_run_out_is_said(self, sign_in: SignIn) -> None:
        waits_for_a_secret()
        HandedSecret.objects.update(expires_at=Now())
        assert "has expired" in sign_in("view_task", ANSWER).get(QUEUE).content.decode()

    def test_a_task_that_asks_for_nothing_gets_none(self, sign_in: SignIn) -> None:
        browser = sign_in("view_task", ANSWER)
        task = waits()
        page = browser.post(f"{QUEUE}{task.pk}/link/", follow=True)
        assert "does not wait for a secret" in page.content.decode()


FORM_OF_TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "title": "Where to", "enum": ["Rome", "Oslo"]},
        "people": {"type": "integer", "default": 2},
        "note": {"type": "string", "maxLength": 500, "description": "Wishes"},
        "sure": {"type": "boolean"},
        "more": {"type": "array"},
        "insured": {"type": "boolean"},
    },
    "required": ["to", "people", "sure"],
}


def ask_with_a_form(form: dict[str, Any], name: str = "task-1", text: str = "A trip?") -> Task:
    """A task whose question has a form."""
    task = waits(name)
    parts = [{"text": text}, {"data": {"form": form}}]
    message = {"messageId": "q", "role": "ROLE_AGENT", "parts": parts, "extensions": [FORM]}
    Task.objects.filter(pk=task.pk).update(status_message=json.dumps(message))
    task.refresh_from_db()
    return task


APPROVAL = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "message": {"type": "string"}},
    "required": ["approved"],
}


class TestQueueMode:
    def test_opens_the_first_task_or_the_one_that_is_named(self, admin_client: Client) -> None:
        first, second = waits("first", "One?", minutes=9), waits("second", "Two?")
        for query, task in (("", first), (f"?task={second.pk}", second), ("?task=99", first)):
            assert admin_client.get(QUEUE + query).context["page"].chosen.task == task

    def test_shows_the_conversation_beside_to_who_may_view_the_task(
        self, admin_client: Client, sign_in: SignIn
    ) -> None:
        waits("first", text="<b>Blue?", agent="demo")
        Message.objects.update(body=json.dumps(said("<i>Paint it")))
        page = admin_client.get(QUEUE).text
        assert "&lt;i&gt;Paint it" in page
        assert "<i>Paint it" not in page
        assert 'aria-label="Conversation"' not in sign_in(ANSWER).get(QUEUE).text

    def test_counts_in_its_title(self, admin_client: Client) -> None:
        waits()
        assert "<title>(1) Inbox" in admin_client.get(QUEUE).text

    def test_opens_the_next_task_after_an_answer(self, admin_client: Client) -> None:
        tasks = [waits(f"task-{number}", minutes=9 - number) for number in range(3)]
        page = admin_client.get(f"{QUEUE}?who=free&task={tasks[1].pk}")
        assert page.context["back"] == f"who=free&task={tasks[2].pk}"
        sent = answer(admin_client, tasks[1], back=page.context["back"])
        assert sent["Location"] == f"{QUEUE}?who=free&task={tasks[2].pk}"

    def test_does_not_name_the_form_in_the_question(self, admin_client: Client) -> None:
        ask_with_a_form(APPROVAL, text="Pay 1,240.00 EUR?")
        page = admin_client.get(QUEUE).text
        assert "Pay 1,240.00 EUR?" in page
        assert "[data]" not in page

    def test_has_buttons_to_approve_and_deny(self, admin_client: Client) -> None:
        task = ask_with_a_form(APPROVAL)
        page = admin_client.get(QUEUE).text
        assert 'name="field-0" value="yes" data-key="a">Approve' in page
        assert 'name="field-0" value="no" data-key="d">Deny' in page
        assert "Send the answer" not in page
        given = {"event": task.last_event, "field-0": "no", "field-1": "too much"}
        assert admin_client.post(f"{QUEUE}{task.pk}/answer/", given).status_code == 302
        said = json.loads(Message.objects.filter(task=task).latest("number").body)
        assert said["parts"] == [{"data": {"approved": False, "message": "too much"}}]

    def test_one_answer_goes_to_all_chosen_tasks_that_ask_the_same(
        self, admin_client: Client
    ) -> None:
        alike = [ask_with_a_form(APPROVAL, f"task-{n}", f"Pay {n}?") for n in range(3)]
        other = waits("other")
        chosen = {"task": [task.pk for task in (*alike, other)]}
        page = admin_client.post(f"{QUEUE}answer_many/", chosen)
        assert "to 3 tasks" in page.text
        assert "1 of the selected tasks ask something else" in page.text
        keys = re.findall(r'name="task" value="(\d+)"', page.text)
        given = {"event": alike[0].last_event, "field-0": "yes", "task": keys}
        admin_client.post(f"{QUEUE}{alike[0].pk}/answer/", given)
        states = dict(Task.objects.values_list("public_id", "state"))
        assert states.pop("other") == TaskState.INPUT_REQUIRED
        assert set(states.values()) == {TaskState.WORKING}
        assert AuditEntry.objects.filter(action="task.answer").count() == 3

    def test_tells_which_chosen_task_did_not_take_the_answer(self, admin_client: Client) -> None:
        first, gone = waits("first"), waits("gone")
        Task.objects.filter(pk=gone.pk).update(state=TaskState.CANCELED)
        given = {"text": "blue", "event": first.last_event, "task": [gone.pk]}
        admin_client.post(f"{QUEUE}{first.pk}/answer/", given)
        told = [str(one) for one in admin_client.get(QUEUE).context["messages"]]
        assert told[0] == "Answered: first."
        assert told[1].startswith("gone: ")

    def test_only_who_may_answer_is_shown_the_form_for_many(self, sign_in: SignIn) -> None:
        assert sign_in("view_task").post(f"{QUEUE}answer_many/").status_code == 403


class TestAForm:
    @pytest.fixture
    def task(self, settings: Settings) -> Task:
        """A task whose question has a form."""
        return ask_with_a_form(FORM_OF_TRIP)

    def test_has_a_field_for_each_property(self, admin_client: Client, task: Task) -> None:
        page = admin_client.get(QUEUE).text
        assert re.search(r'<select id="field-0-of-\d+" name="field-0">', page)
        assert "<option>Rome</option>" in page
        assert re.search(
            r'type="number" step="any" id="field-1-of-\d+" name="field-1" value="2"', page
        )
        assert re.search(r'<textarea id="field-2-of-\d+" name="field-2" rows="3" aria-desc', page)
        buttons = re.findall(r'<input type="radio" name="field-3" value="(\w+)"( checked)?>', page)
        assert buttons == [("yes", ""), ("no", "")]
        assert re.search(r'type="checkbox" id="field-5-of-\d+" name="field-5">', page)
        assert "Where to" in page

    def test_is_sent_as_data(self, admin_client: Client, task: Task) -> None:
        fields = {"field-0": "Rome", "field-1": "3", "field-3": "no", "field-4": "[1]"}
        given = {"event": task.last_event, **fields}
        assert admin_client.post(f"{QUEUE}{task.pk}/answer/", given).status_code == 302
        answer = json.loads(Message.objects.filter(task=task).latest("number").body)
        assert answer["parts"] == [
            {
                "data": {
                    "to": "Rome",
                    "people": 3,
                    "sure": False,
                    "more": [1],
                    "insured": False,
                }
            }
        ]

    def test_that_is_refused_is_shown_again_with_the_fields(
        self, admin_client: Client, task: Task
    ) -> None:
        given = {"event": task.last_event, "field-0": "Rome", "field-1": "x", "field-2": "soon"}
        answer = admin_client.post(f"{QUEUE}{task.pk}/answer/", given)
        assert answer.status_code == 400
        assert "people &#x27;x&#x27; is not of type &#x27;integer&#x27;" in answer.text
        assert "sure is missing" in answer.text
        assert ">soon</textarea>" in answer.text
        assert "<option selected>Rome</option>" in answer.text
