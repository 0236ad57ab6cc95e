"""The checker of the farm finds nothing wrong with what is right, and each wrong by its own name."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lab.farm.checker import INVARIANTS, Terms, check, latencies
from lab.farm.rows import AttemptRow, ConfigRow, DeliveryRow, Rows
from lab.faultlab.dump import EventRow, TaskRow
from lab.faultlab.history import Record

PAIR = Ed25519PrivateKey.from_private_bytes(b"p" * 32)
PUBLIC = "whpk_" + base64.b64encode(PAIR.public_key().public_bytes_raw()).decode()
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
TERMS = Terms(scale=0.001, limit=1.0, keys=(SECRET, PUBLIC))
T = 1_800_000_000.0
URL = "http://receiver.farm.test:8080/e/1?tag=c-1"


class World:
    """A webhook that is told of two events: the first is refused once, both are delivered."""

    def __init__(self) -> None:
        self.records = [
            Record(T, "registered", {"tag": "c-1", "task": "task-1", "url": URL, "token": "tok", "ends": "delivered", "distinct": True}),
            *self.request(T + 1.1, "msg_1", '{"n":1}', 500),
            *self.request(T + 1.3, "msg_1", '{"n":1}', 200),
            *self.request(T + 1.5, "msg_2", '{"n":2}', 200),
        ]  # fmt: skip
        self.rows = Rows(
            tasks=(
                TaskRow(task=1, id="task-1", agent="a", state="completed", last_event=3, created_at=T),
            ),
            events=(
                EventRow(task=1, number=1, kind=1, created_at=T),
                EventRow(task=1, number=2, kind=2, body='{"status":{"state":"TASK_STATE_WORKING"}}', created_at=T + 1),
                EventRow(task=1, number=3, kind=2, body='{"status":{"state":"TASK_STATE_COMPLETED"}}', created_at=T + 1),
            ),
            configs=(
                ConfigRow(row=1, task=1, url=URL, dialect="v10", cursor=3, active=False, token="", disabled_reason=""),
            ),
            deliveries=(
                self.delivery(1, "msg_1", 2, '{"n":1}', attempts=2, settled_at=T + 1.35),
                self.delivery(2, "msg_2", 3, '{"n":2}', attempts=1, settled_at=T + 1.55),
            ),
            attempts=(
                AttemptRow(row=1, delivery=1, number=1, started_at=T + 1.1, seconds=0.01, status=500, fault="status", worker="w"),
                AttemptRow(row=2, delivery=1, number=2, started_at=T + 1.3, seconds=0.01, status=200, fault="", worker="w"),
                AttemptRow(row=3, delivery=2, number=1, started_at=T + 1.5, seconds=0.01, status=200, fault="", worker="w"),
            ),
        )  # fmt: skip

    def request(
        self, t: float, id_: str, body: str, status: int, *, token: str = "tok"
    ) -> list[Record]:
        """A request, and its answer."""
        signed = f"{id_}.{int(t)}.{body}".encode()
        made = [
            "v1," + base64.b64encode(hmac.digest(b"s" * 32, signed, "sha256")).decode(),
            "v1a," + base64.b64encode(PAIR.sign(signed)).decode(),
        ]
        told = {"id": id_, "tag": "c-1", "path": "/e/1", "body": body, "timestamp": str(int(t))}
        told |= {"signature": " ".join(made), "token": token, "authorization": ""}
        return [
            Record(t, "arrived", told),
            Record(t, "answered", {"id": id_, "tag": "c-1", "status": status}),
        ]

    @staticmethod
    def delivery(row: int, id_: str, number: int, body: str, **more: Any) -> DeliveryRow:
        known: dict[str, Any] = {
            "config": 1,
            "task": 1,
            "address": "x",
            "through": number,
            "status": "delivered",
            "reason": "",
            "created_at": T + 1,
        }
        return DeliveryRow(row=row, webhook_id=id_, number=number, body=body, **{**known, **more})

    def tell(self, t: float, what: str, **said: Any) -> None:
        self.records.append(Record(T + t, what, said))

    def change(self, table: str, index: int, **changes: Any) -> None:
        """One row otherwise."""
        rows = list(getattr(self.rows, table))
        rows[index] = msgspec.structs.replace(rows[index], **changes)
        self.put(table, rows)

    def drop(self, table: str, index: int) -> None:
        """Without a row."""
        rows = list(getattr(self.rows, table))
        del rows[index]
        self.put(table, rows)

    def put(self, table: str, rows: list[Any]) -> None:
        known = {
            name: getattr(self.rows, name)
            for name in ("tasks", "events", "configs", "deliveries", "attempts")
        }
        self.rows = Rows(**{**known, table: tuple(rows)})

    def again(
        self, t: float, id_: str = "msg_2", body: str = '{"n":2}', status: int = 200, **more: Any
    ) -> None:
        self.records += self.request(T + t, id_, body, status, **more)

    @property
    def broken(self) -> set[str]:
        """Names of what is violated."""
        return {violation.invariant for violation in check(self.records, self.rows, TERMS)}


def lost_event(world: World) -> None:
    world.drop("deliveries", 1)
    world.records = [record for record in world.records if record.get("id") != "msg_2"]
    world.drop("attempts", 2)


def wait_for_ever(world: World) -> None:
    world.change("deliveries", 1, status="pending", settled_at=None)


def other_order(world: World) -> None:
    world.change("deliveries", 0, number=3, through=3)
    world.change("deliveries", 1, number=2, through=2)
    world.change("attempts", 2, started_at=T + 1)


def asked_to_wait(world: World) -> None:
    """The first answer was 429, with two tenths of a second and more to wait."""
    world.tell(1.12, "answered", id="msg_1", tag="c-1", path="/e/1", status=429, wait=0.3)


def sent_after_it_was_taken_away(world: World) -> None:
    world.tell(1.55, "deleted", tag="c-1")
    world.again(2)
    world.again(3)


WRONGS: list[tuple[str, Callable[[World], None]]] = [
    ("W1", lost_event),
    ("W1", lambda world: world.change("deliveries", 1, number=2)),
    ("W1", lambda world: world.change("configs", 0, active=True)),
    ("W1", lambda world: world.drop("configs", 0)),
    ("W1", lambda world: world.drop("tasks", 0)),
    ("W2", wait_for_ever),
    ("W2", lambda world: world.change("deliveries", 1, status="dead")),
    ("W2", lambda world: world.drop("attempts", 2)),
    ("W2", lambda world: world.change("deliveries", 1, attempts=2)),
    ("W3", lambda world: world.change("deliveries", 1, status="cancelled", reason="x")),
    ("W4", lambda world: world.again(2, "msg_9")),
    ("W4", lambda world: world.change("deliveries", 1, body="{}")),
    ("W5", lambda world: world.change("attempts", 2, status=500)),
    ("W5", lambda world: world.change("deliveries", 1, status="dead", reason="x")),
    ("W6", other_order),
    ("W6", lambda world: world.change("deliveries", 0, settled_at=T + 9)),
    ("W7", lambda world: world.again(2)),
    ("W8", sent_after_it_was_taken_away),
    ("W9", lambda world: world.again(2, token="another")),
    ("W9", lambda world: world.again(2, token="")),
    ("W10", lambda world: world.change("attempts", 1, started_at=T + 1.0)),
    ("W11", lambda world: world.tell(2, "intruded", peer="x")),
    ("W11", lambda world: world.tell(2, "looked-up", name="outside.example.com")),
    ("W11", lambda world: world.tell(2, "registered-anyway", url="http://127.0.0.1/")),
    ("W12", lambda world: world.tell(2, "called-back", id="msg_1", tasks=["a", "b"])),
    ("W13", lambda world: world.tell(2, "secret-found", where="a log")),
    ("W14", asked_to_wait),
]


class TestCheck:
    def test_finds_nothing_wrong_with_what_is_right(self) -> None:
        world = World()
        world.tell(2, "called-back", id="msg_1", tasks=["a", "a"])
        world.tell(2, "looked-up", name="receiver.farm.test")
        assert check(world.records, world.rows, TERMS) == []

    @pytest.mark.parametrize(("name", "wrong"), WRONGS)
    def test_finds_each_wrong(self, name: str, wrong: Callable[[World], None]) -> None:
        world = World()
        wrong(world)
        assert name in world.broken

    def test_every_invariant_has_a_wrong(self) -> None:
        assert {name for name, _ in WRONGS} == set(INVARIANTS)

    def test_nothing_registered_proves_nothing(self) -> None:
        assert [violation.invariant for violation in check([], Rows(), TERMS)] == ["W0"]

    def test_a_process_that_died_excuses_what_was_on_its_way(self) -> None:
        world = World()
        world.again(3)
        assert world.broken == {"W7"}
        world.tell(1.6, "fault", process="pusher1", action="kill")
        assert world.broken == set()

    def test_a_process_that_could_not_write_it_down_excuses_it(self) -> None:
        world = World()
        world.again(9)
        world.tell(8, "unrecorded")
        assert world.broken == set()

    def test_a_process_that_died_long_after_excuses_nothing(self) -> None:
        world = World()
        world.again(9)
        world.tell(8, "fault", process="pusher1", action="kill")
        assert world.broken == {"W7"}

    def test_what_a_frozen_process_had_on_its_way_is_excused(self) -> None:
        world = World()
        world.again(9)
        asked, answered = world.records[-2:]
        world.records[-2:] = [
            Record(asked.t + 5, asked.what, asked.said),
            Record(answered.t + 5, answered.what, answered.said),
        ]
        assert world.broken == {"W7", "W9"}
        world.tell(11, "fault", process="pusher1", action="stop")
        assert world.broken == set()

    def test_who_asks_to_wait_for_years_is_left_alone_for_a_day(self) -> None:
        world = World()
        world.tell(
            1.6, "answered", id="msg_0", tag="c-1", path="/e/1", status=429, wait=315360000.0
        )
        world.again(89, "msg_3")
        assert "W14" not in world.broken
        world.again(60, "msg_4")
        assert "W14" in world.broken

    def test_an_answer_that_came_too_late_is_none(self) -> None:
        world = World()
        world.records = [r for r in world.records if r.get("id") != "msg_1"]
        (asked, said), *_ = [world.request(T + 1.0, "msg_1", '{"n":1}', 200)]
        world.records += [
            asked,
            Record(T + 2.05, said.what, said.said),
            *world.request(T + 2.2, "msg_1", '{"n":1}', 200),
        ]
        assert "W7" not in world.broken

    def test_what_was_on_its_way_may_come_after_a_webhook_was_taken_away(self) -> None:
        world = World()
        world.tell(1.4, "deleted", tag="c-1")
        world.drop("configs", 0)
        world.change("deliveries", 0, config=None)
        world.change("deliveries", 1, config=None, status="cancelled", reason="deleted")
        assert world.broken <= {"W3"}  # this receiver is said to take all

    def test_a_rotated_token_counts_from_then_on(self) -> None:
        world = World()
        world.tell(1.4, "rotated", tag="c-1", token="new")
        assert world.broken == set()  # what was on its way had the old one
        world.again(5)
        world.tell(4.9, "fault", process="p", action="kill")
        assert "W9" in world.broken

    @pytest.mark.parametrize("flaw", ["signature", "timestamp", "body"])
    def test_a_request_that_does_not_verify_is_told_of(self, flaw: str) -> None:
        world = World()
        record = world.records[-2]
        world.records[-2] = Record(record.t, "arrived", {**record.said, flaw: "1"})
        assert "W9" in world.broken

    def test_a_secret_of_the_receivers_own_signs_and_is_not_sent(self) -> None:
        world = World()
        own = Record(T, "registered", {**world.records[0].said, "token": SECRET})
        quiet: Iterator[Record] = (
            Record(r.t, r.what, {**r.said, "token": ""}) if r.what == "arrived" else r
            for r in world.records[1:]
        )
        world.records = [own, *quiet]
        assert world.broken == set()

    def test_the_older_dialects_are_told_of_ends_only(self) -> None:
        world = World()
        world.change("configs", 0, dialect="v03")
        world.drop("deliveries", 0)
        world.drop("attempts", 0)
        world.drop("attempts", 0)
        world.records = [r for r in world.records if r.get("id") != "msg_1"]
        assert world.broken == set()


def test_latencies_are_from_commit_to_first_arrival() -> None:
    world = World()
    found = latencies(world.records, world.rows, {"c-1"})
    assert [round(seconds, 3) for seconds in found] == [0.1, 0.5]
    assert latencies(world.records, world.rows, {"c-2"}) == []
