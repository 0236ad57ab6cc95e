"""Rounds: whoever queues a lot holds nobody else up, and nobody starves. All of order, nothing of time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from a2a_tasks.models import Run, RunStatus
from a2a_tasks.store import runs
from a2a_tasks.store.accept import accept_many
from a2a_tasks.store.backend import fair_queue, portable, postgres
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.replies import reply
from tests.support.store.world import Pen, claim, held, new
from tests.support.thorough import examples

_names = itertools.count()


def queued(share: str, count: int = 1, **about: Any) -> None:
    """So many new tasks of a share, accepted together."""
    accept_many([new(f"{share}-{next(_names)}", quota_key=share, **about) for _ in range(count)])


def shares(taken: Sequence[ClaimedRun]) -> str:
    """Whose runs these are, in order."""
    return "".join(run.quota_key for run in taken)


@pytest.mark.django_db
class TestOrder:
    def test_who_comes_after_many_of_another_has_every_second_slot_at_once(self) -> None:
        queued("a", 40)
        assert shares(claim(20)) == "a" * 20
        queued("b", 10)
        assert shares(claim(22)) == "a" + "ab" * 10 + "a"

    def test_the_shares_take_turns_whatever_each_of_them_queued(self) -> None:
        queued("a", 30)
        queued("b", 5)
        queued("c", 2)
        assert shares(claim(100)) == "a" + "abc" * 2 + "ab" * 3 + "a" * 24

    def test_one_share_alone_is_served_in_the_order_of_its_messages(self) -> None:
        queued("a", 3)
        queued("a", 3)
        keys = list(Run.objects.order_by("pk").values_list("pk", flat=True))
        assert [taken.key for taken in claim(100)] == keys

    def test_those_who_come_again_and_again_do_not_starve_who_has_waited(self) -> None:
        queued("b", 10)
        queued("a")
        queued("c")
        served = ""
        while served.replace("a", "").replace("c", "") != "b" * 10:
            (taken,) = claim(1)
            served += taken.quota_key
            if taken.quota_key in "ac":
                queued(taken.quota_key)
        assert len(served) <= 3 * 10 + 2

    def test_queues_have_rounds_of_their_own(self) -> None:
        queued("a", 30, queue="slow")
        queued("a", queue="fast")
        assert Run.objects.get(queue="fast").round == 1

    def test_a_message_that_waits_for_its_own_task_holds_no_round(self) -> None:
        first = held("task-1", quota_key="a")
        reply(new("task-1", text="and?", quota_key="a"))
        queued("b", 10)
        claim(9)
        queued("c")
        assert (
            Run.objects.get(quota_key="c").round
            == Run.objects.get(quota_key="b", status="queued").round + 1
        )
        Pen(first).end()

    def test_what_begins_at_once_has_no_round_and_goes_first_if_it_comes_back(self) -> None:
        run = held("task-1", quota_key="a")
        assert Run.objects.get().round == 0
        queued("b", 3)
        runs.hand_back([run.token])
        assert shares(claim(2)) == "ab"

    def test_rows_of_a_deploy_that_knew_no_rounds_go_first(self) -> None:
        queued("a", 3)
        Run.objects.update(round=0, quota_key="")
        queued("b")
        assert [taken.quota_key for taken in claim(10)] == ["", "", "", "b"]


@pytest.mark.django_db
class TestFull:
    def test_of_a_share_that_is_full_nothing_is_taken(self) -> None:
        queued("a", 3)
        queued("b", 2)
        taken = claim(agents=["demo"], full=["a"])
        assert shares(taken) == "bb"
        assert Run.objects.filter(quota_key="a", status=RunStatus.QUEUED).count() == 3

    @pytest.mark.backend("stack")  # on SQLite a claim reads all that wait
    def test_a_claim_looks_no_further_than_those_wait_who_are_not_full(self) -> None:
        queued("a", 30)
        queued("b", 2)
        queued("c", 5)
        assert fair_queue.find_last_eligible_round("agents", ["a"]) == 6
        assert fair_queue.find_last_eligible_round("agents", ["a", "c"]) == 3
        assert fair_queue.find_last_eligible_round("agents", ["a", "b", "c"]) is None
        assert fair_queue.find_last_eligible_round("elsewhere", ["a"]) is None

    def test_it_finds_what_came_back_and_what_has_no_share(self) -> None:
        queued("a", 3)
        Run.objects.filter(pk=Run.objects.earliest("pk").pk).update(round=0, quota_key="")
        taken = claim(agents=["demo"], full=["a"])
        assert shares(taken) == ""
        assert len(taken) == 1

    @pytest.mark.backend("stack")
    def test_of_very_many_who_wait_it_is_not_asked_how_far(self) -> None:
        for number in range(fair_queue.MAX_KEYS):
            queued(f"user:{number}")
        assert fair_queue.find_last_eligible_round("agents", ["a"]) == fair_queue.NO_END


class TestAlgebra(TestCase):
    """Whatever comes, in whatever order it comes and is claimed."""

    @settings(max_examples=examples(30, quick=12))
    @given(
        st.lists(
            st.tuples(st.sampled_from("abcd"), st.integers(1, 5), st.integers(0, 4)), max_size=12
        )
    )
    def test_no_share_has_two_runs_in_a_round(self, steps: list[tuple[str, int, int]]) -> None:
        for share, count, taken in steps:
            queued(share, count)
            before = list(Run.objects.filter(status="queued").values_list("quota_key", "round"))
            assert len(before) == len(set(before))
            if taken:
                claim(taken)


@pytest.mark.backend("stack")
@pytest.mark.django_db
def test_the_statement_and_its_twin_give_the_same_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def written() -> list[tuple[str, int]]:
        queued("a", 5)
        queued("b", 2)
        claim(3)
        queued("c")
        queued("b", 2)
        found = list(Run.objects.order_by("pk").values_list("quota_key", "round"))
        Run.objects.all().delete()
        return found

    statement = written()
    monkeypatch.setattr(postgres, "insert_tasks", portable.insert_tasks)
    assert written() == statement
