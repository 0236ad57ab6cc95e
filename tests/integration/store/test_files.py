"""Files out of the row: what is kept, whose it is, and that no bytes are ever forgotten."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import resource
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage, storages
from django.db import connections
from django.utils import timezone

from a2a_tasks.caller import OwnerScope, scope_in
from a2a_tasks.models import StoredFile, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.values import Part
from a2a_tasks.store import files, purge
from a2a_tasks.store.accept import accept
from a2a_tasks.store.files import FileGone
from a2a_tasks.store.purge import RetentionLimits
from a2a_tasks.store.replies import reply
from tests.support.store.world import ALICE, BOB, CHARLIE, accepted, new

pytestmark = pytest.mark.django_db

CONTENT = b"\x00\x01" * 50_000
OTHER_AGENT = OwnerScope("", "user:alice", "other")


class Broken(FileSystemStorage):
    """A storage that is away while it is told to be."""

    away = True

    def _save(self, name: str, content: Any) -> str:
        if self.away:
            raise ConnectionError("no route to the bucket")
        return str(super()._save(name, content))  # type: ignore[misc]

    def delete(self, name: str) -> None:
        if self.away:
            raise ConnectionError("no route to the bucket")
        super().delete(name)


@pytest.fixture(autouse=True)
def place(settings: Any, tmp_path: Path) -> Path:
    """Keep files in a directory of the test's own."""
    use(settings, "django.core.files.storage.FileSystemStorage", tmp_path)
    return tmp_path


def use(settings: Any, backend: str, place: Path) -> None:
    """Have files kept by this storage."""
    usual = settings.STORAGES["a2a_files"]["OPTIONS"]
    own = {"BACKEND": backend, "OPTIONS": {**usual, "location": str(place)}}
    settings.STORAGES = {**settings.STORAGES, "a2a_files": own}


def part(content: bytes = CONTENT, **about: Any) -> Part:
    """A file in a message."""
    about = {"filename": "a.bin", "media_type": "application/x-test", **about}
    return Part(raw=base64.b64encode(content).decode(), **about)


def keep(scope: OwnerScope = ALICE, task: int | None = None, **about: Any) -> uuid.UUID:
    """Put a file away; returns its id."""
    _, key = asyncio.run(files.keep(part(**about), scope, task))
    return key


def read(file: uuid.UUID, scope: OwnerScope = ALICE) -> bytes | None:
    """What a file holds, for who may see it."""
    row = files.find(file.hex, scope.agent, scope)
    return None if row is None else asyncio.run(files.read(row))


def bytes_in(place: Path) -> list[str]:
    """The files on the disk."""
    return sorted(path.name for path in place.rglob("*") if path.is_file())


def swept() -> int:
    """Sweep to the end; how many went."""
    count = 0
    while gone := files.sweep(2):
        count += gone
    return count


class TestKeeping:
    def test_the_part_refers_to_the_file_and_holds_no_bytes(self) -> None:
        kept, key = asyncio.run(files.keep(part(), ALICE))
        assert file_of(kept) == key.hex
        assert (kept.raw, kept.filename) == (Part(text="").raw, "a.bin")
        assert kept.media_type == "application/x-test"

    def test_the_row_tells_size_digest_type_name_and_owner(self) -> None:
        row = StoredFile.objects.get(pk=keep(BOB))
        assert (row.size, row.sha256) == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
        assert (row.owner, row.tenant, row.agent) == (BOB.owner, BOB.tenant, BOB.agent)
        assert (row.media_type, row.filename) == ("application/x-test", "a.bin")

    def test_a_name_is_no_path_and_may_be_anything(self, place: Path) -> None:
        key = keep(filename="../../etc/passwd\x00\udcff".encode(errors="replace").decode())
        assert bytes_in(place) == [key.hex]

    def test_others_cannot_read_the_bytes_on_the_disk(self) -> None:
        path = Path(storages["a2a_files"].path(StoredFile.objects.get(pk=keep()).name))
        assert path.read_bytes() == CONTENT
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    def test_only_large_files_are_kept_so(self, settings: Any) -> None:
        settings.A2A_FILE_INLINE_BYTES = 100
        assert not files.is_large(part(b"x" * 100))
        assert files.is_large(part(b"x" * 101))
        assert not files.is_large(Part(text="x" * 1000))

    def test_a_full_disk_keeps_no_piece(self, place: Path) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(CONTENT) // 2, hard))
        try:
            with pytest.raises(OSError, match="too large"):
                files._save("aa/piece", CONTENT)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not [each for each in place.rglob("*") if each.is_file()]

    def test_a_storage_that_is_away_keeps_nothing(self, settings: Any, place: Path) -> None:
        use(settings, f"{__name__}.Broken", place)
        with pytest.raises(Overloaded) as told:
            keep()
        assert told.value.undone
        assert files.sweep() == 0, "its row waits until the storage is back"
        use(settings, "django.core.files.storage.FileSystemStorage", place)
        assert swept() == 1
        assert not StoredFile.objects.exists()


class TestTaking:
    def test_a_file_belongs_to_the_task_of_its_message(self) -> None:
        key = keep()
        assert read(key) is None, "nobody has it before its task is there"
        task = accept(new(companions=(files.attach_files([key]),))).task
        assert StoredFile.objects.get(pk=key).task_id == task
        assert read(key) == CONTENT

    def test_a_file_lies_in_the_drawer_of_its_task(self) -> None:
        """Also where new tasks would lie in another one, since the agent's visibility was changed."""
        own = OwnerScope("acme", "key:a", "demo")
        accept(new(scope=own))
        shared = scope_in("acme", "key:a", "demo", shared=True)
        key = keep(shared)
        reply(new(scope=shared, principal="key:a", companions=(files.attach_files([key]),)))
        assert read(key, own) == CONTENT
        assert read(key, shared) is None

    @pytest.mark.parametrize("scope", [BOB, CHARLIE, OTHER_AGENT], ids=["owner", "tenant", "agent"])
    def test_it_does_not_exist_for_others(self, scope: OwnerScope) -> None:
        key = keep(task=accepted().task)
        assert read(key) == CONTENT
        assert read(key, scope) is None

    def test_one_that_was_swept_undoes_the_message(self) -> None:
        key = keep()
        asyncio.run(files.discard([key]))
        with pytest.raises(Overloaded):
            accept(new(companions=(files.attach_files([key]),)))
        assert not Task.objects.exists()

    def test_one_that_is_being_discarded_cannot_be_taken(self, settings: Any, place: Path) -> None:
        key = keep()
        use(settings, f"{__name__}.Broken", place)
        asyncio.run(files.discard([key]))
        with pytest.raises(Overloaded):
            accept(new(companions=(files.attach_files([key]),)))

    def test_what_a_task_has_is_not_discarded(self) -> None:
        key = keep()
        accept(new(companions=(files.attach_files([key]),)))
        asyncio.run(files.discard([key]))
        assert read(key) == CONTENT


class TestRemoving:
    def test_a_file_nobody_took_goes_after_an_hour(self, place: Path) -> None:
        key = keep()
        assert swept() == 0
        StoredFile.objects.update(pending_until=timezone.now() - timedelta(seconds=1))
        assert bytes_in(place) == [key.hex]
        assert swept() == 1
        assert bytes_in(place) == []
        assert not StoredFile.objects.exists()

    def test_bytes_that_are_gone_already_do_not_hold_up_the_row(self, place: Path) -> None:
        key = keep()
        StoredFile.objects.update(pending_until=None)
        next(place.rglob(key.hex)).unlink()
        assert swept() == 1

    def test_retention_takes_the_files_of_its_tasks_and_no_others(self, place: Path) -> None:
        old, young = accepted("old").task, accepted("young").task
        gone, stays = keep(task=old), keep(task=young)
        then = timezone.now() - timedelta(days=40)
        Task.objects.filter(pk=old).update(
            created_at=then, status_at=then, state="TASK_STATE_COMPLETED"
        )
        Task.objects.get(pk=old).runs.update(status="ended")
        assert sum(removed.tasks for removed in purge.purge(RetentionLimits.of(30, 0))) == 1
        assert bytes_in(place) == [stays.hex]
        assert not StoredFile.objects.filter(pk=gone).exists()

    @pytest.mark.django_db(transaction=True)
    def test_what_comes_while_its_task_is_removed_is_removed_too(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task, save = accepted().task, files._save

        def save_late(name: str, content: bytes) -> None:
            try:
                StoredFile.objects.update(task=None)
                assert swept() == 1
            finally:
                connections.close_all()  # this thread is none of the store's
            save(name, content)

        monkeypatch.setattr(files, "_save", save_late)
        with pytest.raises(FileGone):
            keep(task=task)
        assert bytes_in(place) == []

    def test_a_storage_that_is_away_costs_only_time(self, settings: Any, place: Path) -> None:
        task = accepted().task
        keep(task=task)
        use(settings, f"{__name__}.Broken", place)
        StoredFile.objects.filter(task=task).update(task=None)
        assert swept() == 0
        assert bytes_in(place) != []
        use(settings, "django.core.files.storage.FileSystemStorage", place)
        assert swept() == 1
        assert bytes_in(place) == []


class TestReading:
    def test_bytes_that_are_gone_are_told_as_gone(self, place: Path) -> None:
        key = keep(task=accepted().task)
        next(place.rglob(key.hex)).unlink()
        with pytest.raises(FileGone):
            read(key)

    def test_a_span_comes_in_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "CHUNK", 1000)
        row = files.find(keep(task=accepted().task).hex, ALICE.agent)
        assert row is not None

        async def pieces() -> list[bytes]:
            file = await files.open_file(row)
            found = [piece async for piece in files.chunks(file, 5, 2500)]
            file.close()
            return found

        found = asyncio.run(pieces())
        assert [len(piece) for piece in found] == [1000, 1000, 500]
        assert b"".join(found) == CONTENT[5:2505]
