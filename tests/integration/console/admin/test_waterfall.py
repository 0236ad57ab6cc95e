"""The waterfall on the page of a task: bars with words, cut by what the user may see, and live while the task goes on."""

from __future__ import annotations

import json
import logging
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from a2a_console.admin.tasks import waterfall
from a2a_tasks.models import Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import run_lines, segments
from tests.integration.console.diagnosis.test_call_tree import make_call
from tests.support.console.admin.rows import add_run, add_step, make_task
from tests.support.console.api.world import person

pytestmark = pytest.mark.django_db


def page(client: Client, task: Task, view: str = "change") -> str:
    """A page of the task, or a piece of it."""
    answer = client.get(f"/admin/a2a_tasks/task/{task.pk}/{view}/")
    assert answer.status_code == 200
    return answer.text


def rows_of(body: str) -> list[str]:
    """The labels of the rows, those in folds among them."""
    labels = re.findall(r'<svg [^>]*role="group" aria-label="([^"]*)"', body)
    return [" ".join(label.split()) for label in labels]


def bars_of(body: str) -> list[str]:
    """What the bars say."""
    return re.findall(r"<title>([^<]*)</title></rect>", body)


def test_it_shows_attempts_waits_and_steps_with_words(admin_client: Client) -> None:
    task, now = make_task(state=TaskState.WORKING), timezone.now()
    past = [[1, "a", now.timestamp() - 9, now.timestamp() - 8, segments.PARKED, "the <b>bank</b>"]]
    run = add_run(task, RunStatus.RUNNING, worker="b", past=past)
    for n in range(3):
        add_step(task, run, f"compare line {n}")
    body = page(admin_client, task)
    assert rows_of(body) == [
        f"run {run.pk}",
        "step compare line 0 … 2 (3 ×)",
        *(f"step compare line {n}" for n in range(3)),
        "wait the &lt;b&gt;bank&lt;/b&gt;",
    ]
    assert any("attempt 1 on a, 1.0 s: parked in the &lt;b&gt;bank" in bar for bar in bars_of(body))
    assert "<b>bank" not in body
    assert "style=" not in body.partition('id="a2a-top"')[2].partition('id="a2a-tab"')[0]


def test_a_user_who_may_not_view_runs_sees_none() -> None:
    task = make_task()
    add_step(task, add_run(task, RunStatus.RUNNING), "ocr")
    client = person("a2a_tasks.view_task")
    assert "a2a-waterfall" not in page(client, task)
    assert "a2a-waterfall" not in page(client, task, "live/top")


class TestABar:
    def open(self, client: Client, task: Task, says: str) -> str:
        """Follow the link of the bar that says so; the panel."""
        found = re.findall(r'href="\?bar=(\w+)#a2a-panel" aria-label="([^"]*)"', page(client, task))
        [key] = [key for key, text in found if text.startswith(says)]
        body = client.get(f"/admin/a2a_tasks/task/{task.pk}/change/?bar={key}").text
        return body.partition('id="a2a-panel"')[2].partition("</article>")[0]

    def test_of_a_step_has_its_output_its_run_and_what_was_logged_meanwhile(
        self, admin_client: Client
    ) -> None:
        task, now = make_task(), timezone.now()
        run = add_run(task, RunStatus.ENDED)
        step = add_step(task, run, "ocr <b>", '{"pages <i>": "<script>"}')
        type(step).objects.filter(task=task).update(created_at=now, seconds=2)
        for seconds, text in ((1, "paper <b>is low"), (9, "earlier")):
            at = now - timedelta(seconds=seconds)
            run_lines.write([run_lines.RunLogLine(run.pk, seconds, at, logging.INFO, "x", text)])
        body = self.open(admin_client, task, "step: ocr")
        for words in ("ocr &lt;b&gt;", "pages &lt;i&gt;", "paper &lt;b&gt;is low", f"/{run.pk}/"):
            assert words in body
        assert "earlier" not in body
        assert "2.0 s" in body

    def test_of_a_tool_has_what_it_got(self, admin_client: Client) -> None:
        task = make_task()
        add_step(task, add_run(task, RunStatus.ENDED), "tool:search:call-1")
        call = {"toolCall": {"id": "call-1", "name": "search", "arguments": {"for": "<b>"}}}
        message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"data": call}]}
        body = json.dumps({"status": {"message": message}})
        Event.objects.create(task=task, number=2, kind=EventKind.TOOL, body=body)
        Task.objects.filter(pk=task.pk).update(last_event=2)
        assert "&quot;for&quot;: &quot;&lt;b&gt;&quot;" in self.open(admin_client, task, "tool")

    def test_of_an_unknown_key_opens_nothing(self, admin_client: Client) -> None:
        task = make_task()
        add_run(task, RunStatus.ENDED)
        url = f"/admin/a2a_tasks/task/{task.pk}/change/?bar=<script>"
        assert "<article" not in admin_client.get(url).text


def test_why_a_step_failed_is_for_those_who_may_see_traces(admin_client: Client) -> None:
    task = make_task()
    Task.objects.filter(pk=task.pk).update(tenant="acme")
    run = add_run(task, RunStatus.ENDED)
    text = "step post failed after 0.250 s: ConnectionError: db.internal is away"
    run_lines.write(
        [run_lines.RunLogLine(run.pk, 1, timezone.now(), logging.INFO, "a2a.steps", text)]
    )
    own = person("a2a_tasks.view_task", "a2a_tasks.view_run", tenants=("acme",))
    for client, sees in ((admin_client, True), (own, False)):
        for view in ("change", "live/top"):
            body = page(client, task, view)
            assert "step post" in rows_of(body)
            assert ("db.internal" in body) is sees


def test_a_user_who_is_signed_out_is_told_so(client: Client) -> None:
    assert client.get(f"/admin/a2a_tasks/task/{make_task().pk}/live/top/").status_code == 404


def test_a_long_idle_time_is_folded_and_said(admin_client: Client) -> None:
    task, now = make_task(), timezone.now()
    Task.objects.filter(pk=task.pk).update(created_at=now - timedelta(hours=2))
    run = add_run(task, RunStatus.ENDED)
    Run.objects.filter(pk=run.pk).update(created_at=now - timedelta(hours=2))
    assert "2 h without work, folded" in page(admin_client, task)


def test_a_call_of_another_agent_is_one_row(admin_client: Client) -> None:
    root, child = make_task("root"), make_task("child", agent="billing")
    call = make_call(root.pk, child.pk, root.pk, 1)
    run = add_run(root, RunStatus.ENDED)
    for name in (call.name, f"{call.name}: answer"):
        add_step(root, run, name)
    assert rows_of(page(admin_client, root)) == [f"run {run.pk}", "call billing"]


def test_rows_that_are_too_many_are_counted(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waterfall, "ROWS", 2)
    task = make_task()
    run = add_run(task, RunStatus.ENDED)
    for name in ("ocr", "post", "book"):
        add_step(task, run, name)
    assert "2 more rows are not shown" in page(admin_client, task)


def test_a_fold_has_as_many_rows_as_fit(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waterfall, "ROWS", 4)
    task = make_task()
    run = add_run(task, RunStatus.ENDED)
    for number in range(9):
        add_step(task, run, f"compare {number}")
    body = page(admin_client, task)
    assert "7 more rows are not shown" in body
    assert len(rows_of(body)) == 4


class TestTheHeader:
    def test_has_what_was_asked_as_its_title(self, admin_client: Client) -> None:
        task = make_task()
        Message.objects.filter(task=task).update(opening="Pay the bill")
        assert "<h1>Pay the bill</h1>" in page(admin_client, task)

    def test_has_the_exception_for_those_who_may_see_traces(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.FAILED)
        text = "ValueError: checksum <of> 7"
        Task.objects.filter(pk=task.pk).update(tenant="acme", status_text=text)
        run = add_run(task, RunStatus.FAILED, error=f"Traceback:\n  line\n{text}\n")
        body = page(admin_client, task)
        assert '<p class="a2a-fault"><bdi>ValueError: checksum &lt;of&gt; 7</bdi>' in body
        assert f'#trace-{run.pk}"' in body
        assert f'id="trace-{run.pk}"' in body
        client = person("a2a_tasks.view_task", "a2a_tasks.view_run", tenants=("acme",))
        assert "checksum" not in page(client, task)
