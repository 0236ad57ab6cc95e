"""Which due webhook is sent next."""

from __future__ import annotations

from a2a_push.receiver_queue import MAX_DOUBTFUL, MAX_WELL, ReceiverQueues
from a2a_push.store.records import Candidate


def queues(*about: tuple[int, str, bool], slots: int = 8) -> ReceiverQueues:
    """Queues with one due webhook for each of these receivers: number, tenant, well?"""
    made = ReceiverQueues(slots)
    for receiver, tenant, well in about:
        made.put(Candidate(receiver, receiver, well, 0.0, tenant))
    return made


def chosen(made: ReceiverQueues) -> list[int]:
    return [candidate.config for candidate in made.choose()]


class TestTenants:
    """A tenant with many receivers that nobody knows to be well leaves the others their slots."""

    MANY = tuple((n, "many", False) for n in range(10))

    def test_take_turns(self) -> None:
        assert chosen(queues(*self.MANY, (100, "few", False), (101, "few", False))) == [
            0,
            100,
            1,
            101,
        ]

    def test_do_not_keep_slots_that_nobody_else_wants(self) -> None:
        assert chosen(queues(*self.MANY)) == [0, 1, 2, 3]

    def test_with_slots_already_come_after_those_without(self) -> None:
        made = queues(*self.MANY)
        for receiver in chosen(made)[:3]:
            made.begin(receiver, "many", well=False)
        made.put(Candidate(100, 100, False, 0.0, "few"))
        assert chosen(made) == [100]

    def test_are_ordered_by_the_slots_they_have_and_would_get(self) -> None:
        made = queues((1, "few", False), (2, "few", False), (3, "few", False), slots=12)
        made.begin(100, "many", well=False)
        for receiver in (101, 102):
            made.put(Candidate(receiver, receiver, False, 0.0, "many"))
        assert chosen(made) == [1, 2, 101, 3, 102]


class TestOneReceiver:
    def test_in_doubt_gets_one_request_at_a_time(self) -> None:
        made = ReceiverQueues(100)
        for config in range(3):
            made.put(Candidate(config, 7, False, 0.0))
        assert chosen(made) == [0]
        made.begin(7, "", well=False)
        assert chosen(made) == []
        made.end(7)
        assert chosen(made) == [1]

    def test_that_is_well_again_gets_several(self) -> None:
        made = ReceiverQueues(100)
        made.begin(7, "", well=False)
        for config in range(3):
            made.put(Candidate(config, 7, False, 0.0))
        made.set_well(7, well=True)
        assert chosen(made) == [0, 1, 2]

    def test_comes_last_after_its_turn(self) -> None:
        made = ReceiverQueues(2)
        for config in (1, 2, 3):
            made.put(Candidate(config, 7, True, 0.0))
        made.put(Candidate(10, 8, True, 0.0))
        assert chosen(made) == [1, 2]
        assert chosen(made) == [10, 3]

    def test_is_remembered_once_however_often_it_is_due(self) -> None:
        made = ReceiverQueues(10)
        for _ in range(3):
            made.put(Candidate(1, 7, True, 0.0))
        assert chosen(made) == [1]
        assert not made

    def test_with_more_than_is_remembered_asks_for_a_sweep_when_its_last_request_ended(
        self,
    ) -> None:
        made = ReceiverQueues(10)
        for config in range(MAX_DOUBTFUL + 1):
            made.put(Candidate(config, 7, False, 0.0))
        for last in (False, False, False, True):
            (config,) = chosen(made)
            made.begin(7, "", well=False)
            assert made.end(7) is last
        assert not made.choose()

    def test_that_is_well_has_a_limit_of_its_own(self) -> None:
        made = ReceiverQueues(64)
        for config in range(MAX_WELL + 5):
            made.put(Candidate(config, 7, True, 0.0))
        made.put(Candidate(10**6, 8, True, 0.0))
        assert 10**6 in chosen(made)

    def test_is_forgotten_once_nothing_is_due(self) -> None:
        made = queues((7, "a", True))
        made.choose()
        made.forget_idle()
        made.put(Candidate(1, 7, False, 0.0, "a"))
        assert [candidate.well for candidate in made.choose()] == [False]
