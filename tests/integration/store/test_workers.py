"""Workers in the store: who is there, who has gone without a word, and what each holds."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from django.db.models.functions import Now
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_tasks.models import Worker, WorkerKind
from a2a_tasks.store import workers
from a2a_tasks.store.purge import RetentionLimits, purge
from a2a_tasks.store.workers import Beat
from tests.support.store.world import accepted, held
from tests.support.thorough import examples

pytestmark = pytest.mark.django_db

STARTED = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def beat(name: str = "here:1", **said: Any) -> Beat:
    """A sign of life, written down."""
    about: dict[str, Any] = {"queues": ["agents"], "agents": {"demo": "1.0.0"}, "slots": 10}
    kind = said.pop("kind", WorkerKind.WORKER)
    told = Beat(
        name=name, kind=kind, host="here", pid=1, **{"started_at": STARTED, **about, **said}
    )
    workers.beat(told)
    return told


def silent(name: str, seconds: float) -> None:
    """Have a process been silent for so long."""
    Worker.objects.filter(name=name).update(seen_at=Now() - datetime.timedelta(seconds=seconds))


def names(found: list[Worker]) -> list[str]:
    return [worker.name for worker in found]


class TestBeat:
    def test_a_process_has_one_row_that_says_how_it_is_now(self) -> None:
        beat(running=1)
        beat(running=7, draining=True, version="2.0")
        row = Worker.objects.get()
        assert (row.running, row.draining, row.version) == (7, True, "2.0")
        assert (row.queues, row.agents, row.slots) == (["agents"], {"demo": "1.0.0"}, 10)
        assert row.started_at == STARTED

    def test_a_beat_is_one_statement(self, django_assert_num_queries: Any) -> None:
        beat()
        with django_assert_num_queries(1):
            beat(running=3)

    def test_a_name_longer_than_its_column_is_cut_everywhere_alike(self) -> None:
        beat("h" * 300, version="v" * 300)
        assert Worker.objects.get().name == "h" * 128
        workers.leave("h" * 300)
        assert workers.list_seen() == []


class TestAlive:
    def test_three_missed_beats_are_death(self, settings: Any) -> None:
        settings.A2A_PRESENCE_SECONDS = 5.0
        beat("alive:1"), beat("dead:1")
        silent("alive:1", 12)
        silent("dead:1", 16)
        assert names(workers.alive()) == ["alive:1"]
        assert [(told.worker.name, told.alive) for told in workers.list_seen()] == [
            ("alive:1", True),
            ("dead:1", False),
        ]

    def test_of_a_queue_those_that_take_from_it_and_go_on(self) -> None:
        beat("a:1"), beat("b:1", queues=["other"]), beat("c:1", draining=True)
        assert names(workers.alive("agents")) == ["a:1"]
        assert names(workers.alive()) == ["a:1", "b:1", "c:1"]

    def test_who_leaves_is_not_there_any_more(self) -> None:
        beat()
        workers.leave("here:1")
        assert workers.alive() == []

    def test_who_comes_back_under_the_same_name_is_there_again(self) -> None:
        beat()
        workers.leave("here:1")
        beat()
        assert names(workers.alive()) == ["here:1"]

    def test_the_dead_are_replaced_by_one_fresh_process_each_of_their_kind_and_queues(self) -> None:
        for name in ("dead:1", "dead:2"):
            beat(name)
            silent(name, 600)
        beat("other:1", queues=["other"])
        silent("other:1", 600)
        beat("early:1")
        beat("fresh:1", started_at=datetime.datetime.now(datetime.UTC))
        assert [told.worker.name for told in workers.list_seen() if told.replaced] == ["dead:1"]

    def test_a_replacement_that_died_is_replaced_as_well(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        beat("a:1"), beat("b:1", started_at=now - datetime.timedelta(seconds=500))
        silent("a:1", 600)
        silent("b:1", 300)
        beat("c:1", started_at=now)
        assert [told.worker.name for told in workers.list_seen() if told.replaced] == ["a:1", "b:1"]

    @settings(max_examples=examples(60, quick=15), deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90), st.booleans()), max_size=12))
    def test_dead_and_fresh_are_paired_as_if_each_were_compared_with_each(
        self, lives: list[tuple[int, int, bool]]
    ) -> None:
        now = datetime.datetime.now(datetime.UTC)
        rows = []
        for key, (began, lasted, other) in enumerate(lives):
            times = {"started_at": now - datetime.timedelta(minutes=began)}
            times["seen_at"] = min(now, times["started_at"] + datetime.timedelta(minutes=lasted))
            row = Worker(pk=key, kind="worker", queues=["other" if other else "agents"], **times)
            rows.append(row)
        seen = [workers.WorkerStatus(row, now - row.seen_at) for row in rows]
        assert workers._find_replaced(seen) == compared_one_by_one(rows, now)

    def test_a_list_ends_with_those_that_were_seen_last(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(workers, "LISTED", 3)
        for minutes in range(1, 6):
            beat(f"dead:{minutes}")
            silent(f"dead:{minutes}", minutes * 60)
        beat("alive:1")
        seen = [told.worker.name for told in workers.list_seen()]
        assert seen == ["alive:1", "dead:1", "dead:2"]
        oldest = workers.look_at(Worker.objects.get(name="dead:5"))
        assert 300 <= oldest.silence.total_seconds() < 400

    def test_the_dead_are_not_read_with_the_living(self, monkeypatch: Any) -> None:
        """A worker that crashed at its start for a week has left rows that nobody reads who asks for the living."""
        died(2_000)
        beat("alive:1")
        read: list[str] = []
        monkeypatch.setattr(Worker, "from_db", classmethod(counting(read)))
        assert names(workers.alive()) == ["alive:1"]
        assert len(read) == 1


class TestForgetting:
    def test_the_dead_are_forgotten_after_a_day(self) -> None:
        beat("old:1"), beat("new:1", queues=["other"])
        silent("old:1", 25 * 3600)
        silent("new:1", 23 * 3600)
        assert workers.forget_old() == 1
        assert [told.worker.name for told in workers.list_seen()] == ["new:1"]

    def test_what_is_replaced_or_has_left_is_forgotten_after_an_hour(self) -> None:
        for name in ("dead:1", "dead:2", "left:1"):
            beat(name)
            silent(name, 3700)
        Worker.objects.filter(name="left:1").update(
            left_at=Now() - datetime.timedelta(seconds=3700)
        )
        beat("recent:1")
        workers.leave("recent:1")
        beat("fresh:1", started_at=datetime.datetime.now(datetime.UTC))
        assert workers.forget_old() == 2
        assert set(Worker.objects.values_list("name", flat=True)) == {
            "dead:2",
            "recent:1",
            "fresh:1",
        }

    def test_not_while_a_run_waits_for_its_agents(self, settings: Any) -> None:
        settings.A2A_ORPHAN_SECONDS = 2 * 86400
        for name in ("dead:1", "left:1"):
            beat(name)
            silent(name, 86400 + 3600)
        Worker.objects.filter(name="left:1").update(left_at=Now())
        assert workers.forget_old() == 0

    def test_a_week_of_crashes_is_forgotten_with_the_purge(self) -> None:
        died(3_000)
        for _ in purge(RetentionLimits()):
            pass
        assert (
            Worker.objects.count() <= 260
        )  # those of the last hour, and the last one that nobody replaced


def died(count: int) -> None:
    """Have a worker crashed at its start so often, every 14 seconds until a minute ago."""
    now = datetime.datetime.now(datetime.UTC)
    ages = [datetime.timedelta(seconds=60 + 14 * number) for number in range(count)]
    Worker.objects.bulk_create(
        Worker(
            name=f"dead:{number}",
            kind=WorkerKind.WORKER,
            queues=["agents"],
            host="here",
            pid=number,
            started_at=now - age,
            seen_at=now - age,
        )
        for number, age in enumerate(ages)
    )


def counting(read: list[str]) -> Any:
    """`Worker.from_db`, which notes each row that is read."""
    real = Worker.from_db.__func__  # type: ignore[attr-defined]

    def from_db(cls: type[Worker], *about: Any) -> Worker:
        read.append("a row")
        return real(cls, *about)  # type: ignore[no-any-return]

    return from_db


def compared_one_by_one(rows: list[Worker], now: datetime.datetime) -> set[int]:
    """What is replaced, by its definition."""
    dead = sorted(
        (r for r in rows if now - r.seen_at >= workers.patience()), key=lambda row: row.seen_at
    )
    replaced: set[int] = set()
    for fresh in sorted(rows, key=lambda row: row.started_at):
        for gone in dead:
            alike = gone.queues == fresh.queues and gone.seen_at <= fresh.started_at
            if alike and gone.pk not in replaced:
                replaced.add(gone.pk)
                break
    return replaced


class TestServing:
    def test_counts_the_living_of_each_queue_that_is_named_or_waited_in(self) -> None:
        beat("a:1"), beat("b:1", draining=True), beat("c:1", queues=["agents", "night"])
        accepted(queue="slow")
        counted = workers.count_serving(["agents", "night", "day"], workers.list_seen())
        assert counted == {"agents": 2, "day": 0, "night": 1, "slow": 0}

    def test_says_nothing_where_processes_say_nothing(self, settings: Any) -> None:
        settings.A2A_PRESENCE_SECONDS = 0
        assert workers.count_serving(["agents"], workers.list_seen()) == {}


class TestHolding:
    def test_the_runs_under_its_leases_with_their_tasks(
        self, django_assert_num_queries: Any
    ) -> None:
        run = held("mine")
        accepted("waiting")
        with django_assert_num_queries(1):
            (found,) = workers.list_runs("here:1")
            assert (found.pk, found.task.public_id) == (run.key, "mine")
        assert list(workers.list_runs("there:1")) == []
