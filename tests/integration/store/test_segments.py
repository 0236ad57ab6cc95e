"""The attempts of a run that ended before the run did: each is kept with its times, whatever ended it."""

from __future__ import annotations

import pytest

from a2a_tasks.models import Run, Step
from a2a_tasks.store import runs, segments, steps
from a2a_tasks.store.parking import Parking, park, wake
from a2a_tasks.store.records import ClaimedRun, StepResult
from a2a_tasks.store.segments import Segment, read_segments
from tests.support.store.world import claim, expire, held

pytestmark = pytest.mark.django_db


def past(run: ClaimedRun) -> list[Segment]:
    """The ended attempts of a run."""
    return read_segments(Run.objects.get(pk=run.key).past)


def parked(run: ClaimedRun) -> ClaimedRun:
    """Park a run, wake it at once, and claim it again."""
    park(Parking(run, "night", 0.0))
    wake()
    [again] = claim()
    return again


class TestAnAttemptThatEndsBeforeItsRun:
    def test_is_kept_with_its_worker_its_times_and_its_step_when_it_is_parked(self) -> None:
        run = held()
        began = Run.objects.get(pk=run.key).started_at
        again = parked(run)
        [segment] = past(run)
        stored = Run.objects.get(pk=run.key)
        assert (segment.attempt, segment.worker) == (1, "here:1")
        assert (segment.how, segment.step) == (segments.PARKED, "night")
        assert began is not None and stored.started_at is not None
        assert abs((segment.began - began).total_seconds()) < 0.01
        assert began <= segment.ended <= stored.started_at
        assert again.attempt == 1, "a parked attempt does not count"

    def test_is_kept_when_its_process_hands_it_back(self) -> None:
        run = held()
        runs.hand_back([run.token])
        assert [(each.attempt, each.how) for each in past(run)] == [(1, segments.HANDED_BACK)]

    def test_is_kept_when_its_process_died_and_ends_with_its_lease(self) -> None:
        run = held()
        expire(run.key)
        ends = Run.objects.get(pk=run.key).lease_until
        assert runs.reclaim_expired(max_attempts=3) == 1
        [segment] = past(run)
        assert segment.how == segments.DIED
        assert ends is not None and abs((segment.ended - ends).total_seconds()) < 0.01

    def test_is_kept_when_its_process_reports_a_crash(self) -> None:
        run = held()
        runs.report_crash(run, "was killed", max_attempts=3)
        assert [each.how for each in past(run)] == [segments.DIED]

    def test_is_not_kept_when_it_is_the_last_one(self) -> None:
        run = held()
        runs.report_crash(run, "was killed", max_attempts=1)
        assert not past(run)


def test_a_run_keeps_its_first_and_its_newest_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = held()
    first = [7, "old", 1.0, 2.0, segments.PARKED, "first"]
    others = [[7, "old", 1.0, 2.0, segments.PARKED, f"{n}"] for n in range(segments.MOST - 1)]
    Run.objects.filter(pk=run.key).update(past=[first, *others])
    parked(run)
    kept = past(run)
    assert len(kept) == segments.MOST
    assert [each.step for each in (kept[0], kept[1], kept[-1])] == ["first", "1", "night"]


def test_a_step_keeps_the_seconds_of_its_work() -> None:
    run = held()
    steps.keep(StepResult(run, "ocr", "1", 0.25))
    steps.keep(StepResult(run, "carried", "2"))
    kept = dict(Step.objects.values_list("name", "seconds"))
    assert kept == {"ocr": 0.25, "carried": None}
