"""`manage.py audit` and `manage.py privacy`, as operators type them."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import AuditEntry, AuditLink, Hold, Task
from a2a_tasks.store import audit_seals, cancel, run_lines
from a2a_tasks.store.audit_triggers import unlock
from a2a_tasks.store.run_lines import RunLogLine
from tests.support.console.admin.rows import add_artifact, add_usage
from tests.support.push.rows import SECRETS, make_config, make_delivery
from tests.support.store.world import AT, BOB, accepted

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("empty_audit_log"),
    pytest.mark.quick_on("sqlite"),
]


def run(*words: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


class TestAudit:
    def test_verifies_a_whole_log_and_shows_its_head(self) -> None:
        accepted()
        assert "Not sealed yet: 1" in run("audit", "verify")
        assert run("audit", "seal") == "Sealed: 1\n"
        number, link = run("audit", "head").split()
        assert (
            run("audit", "verify", "--since-head", link)
            == f"Whole: 1 entries, up to {number} {link}\n"
        )

    def test_names_what_is_broken_and_fails(self) -> None:
        accepted()
        audit_seals.seal_all()
        with unlock():
            AuditEntry.objects.update(actor="mallory")
        with pytest.raises(CommandError, match=r"BROKEN: entry \d+, of link 1, is not what"):
            run("audit", "verify")

    def test_exports_what_was_asked_for_with_its_place_in_the_chain(self) -> None:
        accepted("t-1")
        accepted("t-2", scope=BOB)
        cancel.cancel(BOB, "t-2")
        audit_seals.seal_all()
        lines = run("audit", "export", "--object", "t-2", "--action", "task").splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row["action"] for row in rows] == ["task.send", "task.cancel"]
        link = AuditLink.objects.get(entry=rows[0]["id"])
        assert (rows[0]["hash"], rows[0]["actor_salt"]) == (link.hash, link.actor_salt)
        told = AuditEntry.objects.get(action="audit.export")
        assert json.loads(told.detail) == {"action": "task", "object": "t-2"}

    def test_exports_what_is_not_sealed_yet_without_a_place_in_the_chain(self) -> None:
        accepted("t-1")
        (line,) = run("audit", "export", "--object", "t-1").splitlines()
        row = json.loads(line)
        assert (row["action"], row["object"]) == ("task.send", "t-1")
        assert not {"number", "hash", "actor_salt", "object_salt"} & row.keys()

    def test_an_export_can_be_verified_elsewhere(self) -> None:
        """By what decision 20 says, and nothing of the host's."""
        accepted("t-1")
        accepted("t-2")
        audit_seals.seal_all()
        previous = "0" * 64
        for line in run("audit", "export", "--action", "task.send").splitlines():
            row = json.loads(line)
            document = {
                name: row[name]
                for name in (
                    "number",
                    "id",
                    "at",
                    "tenant",
                    "agent",
                    "action",
                    "outcome",
                    "detail",
                    "request",
                )
            }
            for name in ("actor", "object"):
                text = f"{row[f'{name}_salt']}\n{row[name]}"
                document[name] = hashlib.sha256(text.encode()).hexdigest()
            document["previous"] = previous
            text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            previous = hashlib.sha256(text.encode()).hexdigest()
            assert previous == row["hash"]


class TestExport:
    def read(self, file: Path) -> dict[str, list[Any]]:
        with zipfile.ZipFile(file) as archive:
            return {
                Path(name).stem: [json.loads(line) for line in archive.read(name).splitlines()]
                for name in archive.namelist()
            }

    def test_has_everything_of_the_principal_and_no_secret(self, tmp_path: Path) -> None:
        accepted("t-1", text="hello")
        accepted("t-1", scope=BOB, text="not-this")
        task = Task.objects.get(owner="user:alice")
        add_artifact(task, "a", "answered")
        run_lines.write([RunLogLine(task.runs.get().pk, 1, AT, 20, "agent", "working on it")])
        make_delivery(make_config(task))
        add_usage(task, cost="0.5", currency="USD")
        add_usage(Task.objects.get(owner=BOB.owner), "not-this")
        file = tmp_path / "alice.zip"
        assert "1 tasks" in run("privacy", "export", "user:alice", str(file))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        found = self.read(file)
        assert {kind: len(rows) for kind, rows in found.items()} == {
            **dict.fromkeys(("contexts", "tasks", "messages", "artifacts"), 1),
            **dict.fromkeys(("memory", "items"), 0),
            "events": 2,
            "lines": 1,
            "webhooks": 1,
            "deliveries": 1,
            "usage": 1,
            "keys": 0,
            "audit": 1,
        }
        assert found["messages"][0]["message"]["parts"] == [{"text": "hello"}]
        whole = str(found)
        assert "answered" in whole
        assert "not-this" not in whole
        assert [secret for secret in SECRETS if secret in whole] == []
        told = AuditEntry.objects.get(action="privacy.export")
        assert (told.object, json.loads(told.detail)["messages"]) == ("user:alice", 1)

    def test_tells_of_a_key_all_but_the_key(self, tmp_path: Path) -> None:
        issued = issue("robot", scopes=["pay"])
        file = tmp_path / "key.zip"
        run("privacy", "export", f"key:{issued.row.prefix}", str(file))
        (row,) = self.read(file)["keys"]
        assert (row["name"], row["scopes"]) == ("robot", "pay")
        assert "digest" not in row

    def test_leaves_nothing_half_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError

        monkeypatch.setattr("a2a_console.management.commands.privacy._write_zip", fail)
        with pytest.raises(OSError, match=r"^$"):
            run("privacy", "export", "user:alice", str(tmp_path / "alice.zip"))
        assert list(tmp_path.iterdir()) == []


class TestErase:
    def test_says_what_it_would_do_and_does_nothing(self) -> None:
        accepted()
        said = run("privacy", "erase", "user:alice")
        assert "Would go: 1 tasks (1 not ended" in said
        assert "say --yes" in said
        assert Task.objects.exists()

    def test_does_it_when_told_to(self) -> None:
        accepted()
        assert "Gone: 1 tasks, 1 contexts" in run("privacy", "erase", "user:alice", "--yes")
        assert not Task.objects.exists()

    def test_fails_and_says_so_when_something_is_held(self) -> None:
        accepted()
        assert "Held: task task-1" in run("privacy", "hold", "task", "task-1", "--reason", "x")
        assert "x" in run("privacy", "holds")
        assert "Held, and would stay: 1 tasks" in run("privacy", "erase", "user:alice")
        with pytest.raises(CommandError, match="1 tasks are held"):
            run("privacy", "erase", "user:alice", "--yes")
        run("privacy", "release", str(Hold.objects.get().pk))
        with pytest.raises(CommandError, match="no such hold"):
            run("privacy", "release", "7")
        run("privacy", "erase", "user:alice", "--yes")
        assert not Task.objects.exists()


class TestRetention:
    def test_is_set_listed_and_taken_back(self) -> None:
        assert run("privacy", "retention", "acme", "7.5") == "acme  7.5 days\n"
        assert run("privacy", "retention", "", "0") == "(none)  for ever\nacme  7.5 days\n"
        assert run("privacy", "retention", "acme", "default") == "(none)  for ever\n"
        for wrong in (["acme"], ["acme", "-1"], ["acme", "soon"]):
            with pytest.raises(CommandError):
                run("privacy", "retention", *wrong)
