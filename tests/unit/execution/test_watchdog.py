"""The watchdog: it notices that a worker hears its bell no more, has it connect anew, and in the end has it make way."""

from __future__ import annotations

from a2a_tasks.execution.watchdog import Watchdog


class Hands:
    """What a watchdog does, written down."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broker = self.idle = self.connected = True
        self.at_work = False
        self.dog = Watchdog(
            60,
            ring=self.ring,
            busy=lambda: self.at_work,
            connected=lambda: self.connected,
            reconnect=lambda: self.done.append("reconnect"),
            leave=self.leave,
        )

    def ring(self) -> None:
        if not self.broker:
            raise ConnectionRefusedError("no broker")

    def leave(self) -> bool:
        self.done.append("leave" if self.idle else "stay")
        return self.idle

    def look(self, *minutes: float) -> list[str]:
        """Look at these moments; returns what was done."""
        self.done = []
        for minute in minutes:
            self.dog.look(minute * 60)
        return self.done


class TestLooking:
    def test_a_bell_that_is_heard_is_left_alone(self) -> None:
        hands = Hands()
        for minute in range(10):
            hands.dog.hear()
            assert hands.look(minute) == []

    def test_a_silent_one_is_connected_anew_once_and_then_the_worker_leaves(self) -> None:
        hands = Hands()
        hands.dog.hear()
        assert hands.look(0, 1, 1.5) == []
        assert hands.look(2, 2.5) == ["reconnect"]
        assert hands.look(3) == ["leave"]

    def test_a_worker_that_carries_runs_stays(self) -> None:
        hands = Hands()
        hands.idle = False
        hands.dog.hear()
        assert hands.look(0, 1, 2, 3, 4) == ["reconnect", "stay", "stay"]

    def test_one_that_never_heard_anything_stays_since_another_would_not_either(self) -> None:
        hands = Hands()
        assert hands.look(0, 1, 2, 3, 4, 5) == ["reconnect"]

    def test_a_broker_that_is_away_is_waited_for_and_its_return_begins_the_time_anew(self) -> None:
        hands = Hands()
        hands.dog.hear()
        assert hands.look(0, 1) == []
        hands.broker = False
        assert hands.look(*range(2, 100)) == []
        hands.broker = True
        assert hands.look(100, 100.5) == []
        assert hands.look(101) == ["reconnect"]

    def test_celery_gets_the_time_it_sleeps_between_two_attempts_to_connect(self) -> None:
        hands = Hands()
        hands.connected = False
        hands.dog.hear()
        assert hands.look(0, 1, 2, 2.5) == []
        assert hands.look(3, 4) == ["reconnect", "leave"]

    def test_a_bell_that_celery_has_just_connected_to_gets_its_time(self) -> None:
        hands = Hands()
        hands.connected = False
        assert hands.look(0, 1, 1.5) == []
        hands.connected = True
        assert hands.look(2, 2.5) == []
        assert hands.look(3) == ["reconnect"]

    def test_a_worker_whose_threads_are_all_at_work_is_not_deaf(self) -> None:
        hands = Hands()
        hands.at_work = True
        assert hands.look(*range(100)) == []

    def test_when_it_is_heard_again_all_begins_anew(self) -> None:
        hands = Hands()
        assert hands.look(0, 1) == ["reconnect"]
        hands.dog.hear()
        assert hands.look(1.5, 2, 2.5) == []
        assert hands.look(3) == ["reconnect"]
