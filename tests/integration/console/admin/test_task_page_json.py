"""The JSON of a task in any dialect: as its clients get it, bounded, and to be saved."""

from __future__ import annotations

import json

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.test import Client

from a2a_console.admin.tasks import raw_json
from a2a_tasks.models import Message, StoredFile, Task
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import add_artifact, make_task
from tests.support.rows import rolled_back, rows

SCRIPT = "</pre><script>alert(1)</script>"


def page_of(task: Task) -> str:
    """The page of the task."""
    return f"/admin/a2a_tasks/task/{task.pk}/change/"


@pytest.mark.django_db
class TestTheJson:
    @rows("code", DIALECTS, within=rolled_back)
    def test_is_had_in_each_dialect(self, admin_client: Client, code: str) -> None:
        task = make_task("the-task", text=SCRIPT, state=TaskState.WORKING)
        add_artifact(task, "answer", "forty-two", closed=False)
        page = f"/admin/a2a_tasks/task/{task.pk}/json/"
        shown = page_of(task)
        body = admin_client.get(shown, {"tab": "json", "dialect": code}).text
        assert "<script>alert" not in body
        assert "alert(1)" in body
        assert f'<option value="{code}" selected>' in body
        saved = admin_client.get(page, {"dialect": code})
        assert saved["Content-Type"] == "application/json"
        assert saved["Content-Disposition"] == f'attachment; filename="task-{task.pk}.{code}.json"'
        assert "forty-two" in json.dumps(json.loads(saved.content))

    def test_is_in_the_dialect_the_task_was_made_in_unless_another_is_asked_for(
        self, admin_client: Client
    ) -> None:
        task = make_task(dialect="v03", state=TaskState.WORKING)
        page = page_of(task) + "?tab=json"
        assert "&quot;kind&quot;: &quot;task&quot;" in admin_client.get(page).text
        assert "&quot;kind&quot;: &quot;task&quot;" in admin_client.get(page + "&dialect=xx").text
        assert "TASK_STATE_WORKING" in admin_client.get(page + "&dialect=v10").text

    def test_is_cut_and_can_be_saved_whole(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = make_task(text="x" * 50_000)
        page = f"/admin/a2a_tasks/task/{task.pk}/json/"
        monkeypatch.setattr(raw_json, "SHOWN", 1_000)
        body = admin_client.get(page_of(task) + "?tab=json").text
        assert "the first 1000 are shown" in body
        assert len(admin_client.get(page).content) > 50_000

    def test_of_a_huge_task_is_not_put_together(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = make_task(text="x" * 5_000)
        add_artifact(task, "grows", "y" * 1_000, "y" * 1_000, closed=False)
        page = f"/admin/a2a_tasks/task/{task.pk}/json/"
        monkeypatch.setattr(raw_json, "READ", 6_000)
        shown = page_of(task) + "?tab=json"
        assert "too many for a page" in admin_client.get(shown).text
        monkeypatch.setattr(raw_json, "LARGEST", 6_000)
        assert "Too large to be put together" in admin_client.get(shown).text
        assert admin_client.get(page).status_code == 404

    def test_links_to_files_where_the_admin_has_them(self, admin_client: Client) -> None:
        task = make_task()
        name = storages["a2a_files"].save(f"json-{task.pk}", ContentFile(b"x"))
        about = {"size": 1, "sha256": "0" * 64, "name": name, "media_type": "image/png"}
        file = StoredFile.objects.create(task=task, agent=task.agent, **about)
        part = {"url": f"a2a-file:{file.pk.hex}", "mediaType": "image/png"}
        body = json.dumps(
            {"messageId": "m", "role": "ROLE_USER", "parts": [part]}, separators=(",", ":")
        )
        Message.objects.filter(task=task).update(body=body)
        answer = admin_client.get(f"/admin/a2a_tasks/task/{task.pk}/json/")
        assert f"/admin/a2a_tasks/task/{task.pk}/files/{file.pk}/".encode() in answer.content
        assert b"a2a-file:" not in answer.content
