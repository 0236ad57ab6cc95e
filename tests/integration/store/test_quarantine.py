"""Deaths: which count against a run, and how it is begun after those that do not."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pytest
from django.utils import timezone

from a2a_tasks.agents import registry
from a2a_tasks.models import Run, RunStatus
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import runs, steps
from a2a_tasks.store.quarantine import CLEARED, RENEWED, Quarantine
from a2a_tasks.store.records import ClaimedRun, StepResult
from tests.support.store.world import Pen, accepted, claim, expire, found

pytestmark = [pytest.mark.quick_on("stack"), pytest.mark.django_db]


def claim_suspects(quarantine: Quarantine, limit: int = 10) -> list[ClaimedRun]:
    """Claim runs in quarantine for a process."""
    return claim(limit, agents=registry.slugs(), quarantine=quarantine)


def die(taken: Sequence[ClaimedRun]) -> None:
    """The process that carries these runs dies, and another one looks."""
    for run in taken:
        expire(run.key)
    runs.reclaim_expired(max_attempts=3)


def two() -> list[ClaimedRun]:
    """Two runs in one process."""
    accepted("task-1")
    accepted("task-2")
    return claim()


def rows() -> list[tuple[int, int]]:
    """Of each run: the deaths that count, and those beside others."""
    return list(Run.objects.order_by("pk").values_list("deaths", "shared_deaths"))


class TestDeathsThatCount:
    def test_a_death_beside_another_run_counts_against_neither(self) -> None:
        die(two())
        assert rows() == [(0, 1), (0, 1)]
        assert "died with 1 other runs: its lease ended" in Run.objects.latest("pk").error

    def test_a_death_alone_counts(self) -> None:
        accepted()
        die(claim())
        assert rows() == [(1, 0)]

    def test_who_is_rescued_last_did_not_die_alone(self) -> None:
        """Leases that began at different moments end at different moments."""
        for run in two():
            die([run])
        assert rows() == [(0, 1), (0, 1)]

    def test_a_run_that_was_held_from_the_start_has_the_company_of_the_last_heartbeat(self) -> None:
        first, second = two()
        runs.heartbeat([first.token])
        runs.heartbeat([first.token, second.token])
        Pen(second).end()
        die([first])
        assert rows()[0] == (0, 1)

    def test_who_joins_a_process_later_is_company_too(self) -> None:
        accepted("task-1")
        (first,) = claim()
        accepted("task-2")
        claim()
        die([first])
        assert rows()[0] == (0, 1)

    def test_an_agents_own_process_dies_alone_whatever_its_runner_carries(self) -> None:
        first, _ = two()
        runs.report_crash(first, "it died", max_attempts=3)
        assert rows() == [(1, 0), (0, 0)]

    def test_no_number_of_deaths_beside_others_fails_a_task(self) -> None:
        die(two())
        die(claim())
        die(claim_suspects(Quarantine.GROUP))
        for _ in range(5):
            die(claim_suspects(Quarantine.PROCESS))
        assert rows() == [(0, 8), (0, 8)]
        assert found("task-1").state is TaskState.SUBMITTED


class TestProgress:
    def test_who_gets_further_than_ever_before_begins_to_count_anew(self) -> None:
        accepted()
        for said in range(1, 6):
            (taken,) = claim()
            for _ in range(said):
                Pen(taken).state(TaskState.WORKING)
            die([taken])
            assert rows() == [(1, 0)]

    def test_who_says_the_same_again_and_dies_again_is_given_up(self) -> None:
        accepted()
        for _ in range(3):
            (taken,) = claim()
            Pen(taken).state(TaskState.WORKING)
            die([taken])
        assert found("task-1").state is TaskState.FAILED

    def test_a_step_that_is_kept_is_progress_and_one_that_is_found_is_none(self) -> None:
        accepted()
        counted: list[Any] = []
        for kept in (None, "one", None, "two"):
            (taken,) = claim()
            if kept:
                steps.keep(StepResult(taken, kept, "1"))
            die([taken])
            counted += rows()
        assert counted == [(1, 0), (1, 0), (2, 0), (1, 0)]

    def test_it_takes_a_run_out_of_quarantine(self) -> None:
        die(two())
        first, second = claim()
        Pen(first).state(TaskState.WORKING)
        die([first, second])
        assert rows() == [(0, 1), (0, 2)]
        assert [taken.key for taken in claim()] == [first.key]

    def test_who_keeps_a_step_each_time_comes_to_a_process_of_its_own_all_the_same(self) -> None:
        """It kills every process that it shares, however far it gets: it must not go on for ever."""
        first, second = two()
        for n in range(CLEARED + 2):
            steps.keep(StepResult(first, f"step-{n}", "1"))
            die([first, second])
            taken = {one.key: one for stage in Quarantine for one in claim_suspects(stage)}
            first, second = taken[first.key], taken[second.key]
        assert first.quarantine is Quarantine.PROCESS

    def test_who_keeps_a_step_each_time_and_dies_alone_each_time_is_given_up_in_the_end(
        self,
    ) -> None:
        accepted()
        Run.objects.update(attempt=RENEWED - 2)
        for n in range(3):
            (taken,) = claim()
            steps.keep(StepResult(taken, f"step-{n}", "1"))
            die([taken])
        assert found("task-1").state is TaskState.SUBMITTED
        (taken,) = claim()
        steps.keep(StepResult(taken, "the last", "1"))
        die([taken])
        assert found("task-1").state is TaskState.FAILED


class TestQuarantine:
    def test_after_one_death_beside_others_all_begin_at_once(self) -> None:
        die(two())
        assert len(claim()) == 2

    def test_after_two_a_run_is_claimed_as_one_of_a_group(self) -> None:
        die(two())
        die(claim())
        assert claim() == []
        (taken,) = claim_suspects(Quarantine.GROUP, limit=1)
        assert (taken.quarantine, taken.attempt) == (Quarantine.GROUP, 3)
        assert claim_suspects(Quarantine.PROCESS) == []

    def test_after_three_it_is_claimed_for_a_process_of_its_own(self) -> None:
        die(two())
        die(claim())
        die(claim_suspects(Quarantine.GROUP))
        assert (claim(), claim_suspects(Quarantine.GROUP)) == ([], [])
        taken = claim_suspects(Quarantine.PROCESS)
        assert [one.quarantine for one in taken] == [Quarantine.PROCESS] * 2

    def test_whoever_has_just_died_in_one_waits_behind_the_others(self) -> None:
        """Or runs that die at once would have all the processes there are."""
        two()
        for taken in Run.objects.all():
            expire(taken.pk)
        runs.reclaim_expired(max_attempts=3)
        Run.objects.update(shared_deaths=3)
        (first,) = claim_suspects(Quarantine.PROCESS, limit=1)
        runs.report_crash(first, "it died", max_attempts=3)
        (second,) = claim_suspects(Quarantine.PROCESS, limit=1)
        assert second.key != first.key

    def test_a_claim_tells_how_long_its_longest_attempt_can_have_lived(self) -> None:
        """It began two minutes before its lease of 30 s ended, and was alive a lease before that."""
        accepted()
        (taken,) = claim()
        now = timezone.now()
        began, ended = now - datetime.timedelta(seconds=121), now - datetime.timedelta(seconds=1)
        Run.objects.update(started_at=began, lease_until=ended)
        runs.reclaim_expired(max_attempts=3)
        (taken,) = claim()
        assert taken.longest_life == 120 - 15

    def test_limits_of_agents_and_full_shares_hold_for_suspects_too(self) -> None:
        die(two())
        die(claim())
        taken = claim(agents=["demo"], limits={"demo": 1}, quarantine=Quarantine.GROUP)
        assert len(taken) == 1
        assert Run.objects.filter(status=RunStatus.QUEUED).count() == 1
