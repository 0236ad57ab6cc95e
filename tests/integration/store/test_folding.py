"""Folding: what was streamed in pieces is put together after the end, in small jobs, from its own pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a_tasks.models import Artifact
from a2a_tasks.protocol.lifecycle import TERMINAL, assemble
from a2a_tasks.store import cancel, folding, runs
from a2a_tasks.store.append import append
from a2a_tasks.store.records import ArtifactRow
from tests.support.store.world import ALICE, Pen, chunk, expire, found, held

pytestmark = pytest.mark.django_db


class Jobs:
    """What was given to the store's threads, in order. None runs until it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []
        self.statements: list[int] = []

    def put(self, work: Callable[..., object], *about: Any) -> None:
        self.waiting.append(lambda: work(*about))

    def run(self) -> None:
        """Run them, and those that come of them."""
        while self.waiting:
            job = self.waiting.pop(0)
            with CaptureQueriesContext(connection) as queries:
                job()
            self.statements.append(len(queries))


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """The jobs of folding."""
    made = Jobs()
    monkeypatch.setattr(folding, "run_in_background", made.put)
    return made


def written(ids: Iterable[str], *, rounds: int = 2, size: int = 1) -> Pen:
    """A task whose artifacts have grown side by side: a piece of each, then the next of each. All are open."""
    pen, ids = Pen(held()), list(ids)
    rows = [ArtifactRow(n, artifact_id, n) for n, artifact_id in enumerate(ids)]
    append(pen.batch(*(chunk(one, "0" * size) for one in ids), artifacts=rows))
    for n in range(1, rounds):
        append(pen.batch(*(chunk(one, str(n) * size, append=True) for one in ids)))
    return pen


def in_pieces() -> list[str]:
    """The artifacts that are not folded."""
    rows = Artifact.objects.filter(body="").order_by("position")
    return list(rows.values_list("artifact_id", flat=True))


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("way", ["ended", "cancelled", "given up"])
def test_nothing_is_put_together_before_a_task_has_ended(way: str) -> None:
    """However large it is, its end takes no longer."""
    pen = written(["a", "b"])
    if way == "ended":
        pen.end(closed=[0, 1])
    elif way == "cancelled":
        cancel.cancel(ALICE, "task-1")
    else:
        expire(pen.run.key)
        assert runs.give_up(pen.run.key, max_attempts=1)
    assert found().state in TERMINAL
    assert in_pieces() == ["a", "b"]


def test_a_small_artifact_beside_a_large_one_is_folded_alone(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "MAX_BYTES", 2000)
    pen = written(["small", "large"])
    for _ in range(3):
        pen.add("large", "x" * 1000)
    pen.end(closed=[0, 1])
    before = found().view
    jobs.run()
    assert in_pieces() == ["large"]
    assert found().view == before


def test_of_many_artifacts_each_piece_is_read_once(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def reading(bodies: Iterable[str]) -> dict[str, bytes]:
        bodies = list(bodies)
        read.extend(bodies)
        return assemble(bodies)

    pen = written([f"a{n}" for n in range(20)], rounds=10)
    pen.end(closed=range(20))
    before = found().view
    monkeypatch.setattr(folding, "assemble", reading)
    jobs.run()
    assert in_pieces() == []
    assert len(read) == 20 * 10
    assert found().view == before


def test_a_job_is_small_and_others_get_the_thread_in_between(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "SECONDS", 0.0, raising=False)
    monkeypatch.setattr(folding, "SLICE", 50, raising=False)
    written([f"a{n}" for n in range(20)], rounds=20).end(closed=range(20))
    before = found().view
    jobs.run()
    assert in_pieces() == []
    assert found().view == before
    assert max(jobs.statements) <= 8
    assert sum(jobs.statements) <= 20 * 20 / 50 + 20 * 8


def test_an_artifact_of_more_pieces_than_a_job_reads_is_folded(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "SECONDS", 0.0, raising=False)
    monkeypatch.setattr(folding, "SLICE", 3, raising=False)
    written(["a", "b"], rounds=10).end(closed=[0, 1])
    before = found().view
    jobs.run()
    assert in_pieces() == []
    assert found().view == before


@pytest.mark.parametrize("other", ["ab", 'a"', 'a",', "a\\", "ä", "a\n", "", "x" * 500])
def test_ids_that_resemble_each_other_are_told_apart(jobs: Jobs, other: str) -> None:
    written(["a", other or "A"], rounds=3).end(closed=[0, 1])
    before = found().view
    jobs.run()
    assert in_pieces() == []
    assert found().view == before


def test_what_was_begun_anew_is_folded_from_its_last_beginning(jobs: Jobs) -> None:
    pen = written(["a", "b"], rounds=3)
    pen.begin("a", "anew")
    pen.add("a", "more")
    pen.end(closed=[0, 1])
    before = found().view
    jobs.run()
    assert in_pieces() == []
    assert found().view == before


def test_a_piece_that_comes_while_it_is_put_together_is_not_lost(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen = written(["a", "b"], rounds=3)
    append(pen.batch(chunk("b", "last", append=True), closed=[0, 1]))
    come: list[int] = []

    def interrupted(bodies: Iterable[str]) -> dict[str, bytes]:
        whole = assemble(bodies)
        if "a" in whole and not come:
            come.append(pen.add("a", "late"))
        return whole

    monkeypatch.setattr(folding, "assemble", interrupted)
    jobs.run()
    assert come
    assert in_pieces() == ["a"]
    artifacts = found().view.artifacts
    assert isinstance(artifacts, list)
    assert b'"late"' in bytes(artifacts[0])


def test_what_got_more_pieces_before_it_was_looked_at_stays_in_pieces(jobs: Jobs) -> None:
    pen = written(["a", "b"], rounds=3)
    append(pen.batch(chunk("b", "last", append=True), closed=[0, 1]))
    pen.add("a", "late")
    before = found().view
    jobs.run()
    assert in_pieces() == ["a"]
    assert found().view == before
