"""Why a task stands where it does, as pages and the API show it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import timezone

from a2a_console.admin.tasks.diagnosis import read_diagnosis
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import add_run, make_task
from tests.support.console.api.world import asked, person

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"


def page(rf: RequestFactory, task: Task, *permissions: str) -> str:
    """The fragment, as somebody with these permissions sees it."""
    request = rf.get("/")
    request.user = User.objects.create_user("bob", is_staff=True)
    request.user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    context = {"diagnosis": read_diagnosis(request, task.pk)}
    return render_to_string("admin/a2a_tasks/task/diagnosis.html", context)


def at_work(**columns: object) -> Run:
    columns = {
        "worker": "box:12",
        "started_at": None,
        "lease_until": timezone.now() + timedelta(hours=1),
        **columns,
    }
    task = make_task(state=TaskState.WORKING)
    return add_run(task, RunStatus.RUNNING, attempt=1, **columns)


class TestTheFragment:
    def test_says_why_and_what_is_next_and_leads_to_the_run(self, rf: RequestFactory) -> None:
        run = at_work()
        text = page(rf, run.task, "view_run")
        assert "Running on box:12" in text
        assert "Next: The lease ends in" in text
        assert f'href="/admin/a2a_tasks/run/{run.pk}/change/"' in text

    def test_leads_nowhere_for_who_may_not_view_runs(self, rf: RequestFactory) -> None:
        assert "href" not in page(rf, at_work().task)

    def test_says_who_is_needed_in_words(self, rf: RequestFactory) -> None:
        assert "It waits for its client." in page(rf, make_task(state=TaskState.INPUT_REQUIRED))

    def test_shows_names_as_text(self, rf: RequestFactory) -> None:
        text = page(rf, at_work(worker=SCRIPT).task)
        assert SCRIPT not in text
        assert "&lt;script&gt;" in text


class TestTheApi:
    def test_tells_the_same(self) -> None:
        run = at_work()
        answer = asked(person("a2a_tasks.view_task"), f"/tasks/{run.task_id}/diagnosis").json
        assert answer["kind"] == "working"
        assert answer["sentence"].startswith("Running on box:12")
        assert answer["needs"] == "nobody"
        assert answer["link"] == {"model": "a2a_tasks.run", "key": run.pk}
        assert answer["also"] == []

    def test_tells_nobody_of_another_tenant(self) -> None:
        run = at_work()
        Task.objects.filter(pk=run.task_id).update(tenant="acme")
        other = person("a2a_tasks.view_task", tenants=("other",))
        assert asked(other, f"/tasks/{run.task_id}/diagnosis").code == "not_found"
