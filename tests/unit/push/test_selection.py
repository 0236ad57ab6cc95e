"""Which events a webhook is told of, and which together: nothing twice, nothing lost, in the order of the log."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from a2a_push.selection import MAX_JOINED_BYTES, Detail, SelectionStep, join, next_step
from a2a_tasks.agents.agent import PUSH_EVENTS, Agent
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, LogEvent, assemble
from a2a_tasks.protocol.values import TaskState
from tests.support.rows import rows

S = TaskState
OLDER = ["s0", "v00", "v01", "v02", "v03"]
NEWER = ["dr", "v10"]


def status(number: int, state: TaskState = S.WORKING) -> LogEvent:
    """A change of the status."""
    body = f'{{"status":{{"state":"{state.value}","timestamp":"2026-11-21T10:00:00.000Z"}}}}'
    return LogEvent(number=number, kind=EventKind.STATUS, body=body, state=state)


def piece(
    number: int, name: str = "a", text: str = "x", *, append: bool = True, last: bool = False
) -> LogEvent:
    """A piece of an artifact."""
    body: dict[str, object] = {"artifact": {"artifactId": name, "parts": [{"text": text}]}}
    body |= {"append": True} if append else {}
    body |= {"lastChunk": True} if last else {}
    return LogEvent(number=number, kind=EventKind.ARTIFACT, body=write(body).decode())


def said(number: int, kind: EventKind = EventKind.INPUT) -> LogEvent:
    """What streams do not show."""
    return LogEvent(number=number, kind=kind, body="{}")


def steps(
    events: Sequence[LogEvent], dialect: str = "v10", detail: str = Detail.COALESCED
) -> list[list[int]]:
    """The numbers sent together, in steps, until there is nothing to do."""
    found, rest = [], list(events)
    while rest and (step := next_step(rest, dialect, detail)):
        found += [[event.number for event in step.events]] if step.events else []
        assert step.through >= rest[0].number
        rest = [event for event in rest if event.number > step.through]
    return found


LOG = [
    said(1),
    status(2),
    piece(3, append=False),
    piece(4),
    said(5, EventKind.TOOL),
    piece(6, last=True),
    piece(7, "b", append=False),
    said(8, EventKind.MESSAGE),
    piece(9, "b"),
    status(10, S.INPUT_REQUIRED),
    said(11),
    status(12),
    piece(13, "c", append=False, last=True),
    status(14, S.COMPLETED),
]


class TestWhatIsSent:
    @rows("dialect", NEWER)
    def test_is_every_event_a_stream_shows(self, dialect: str) -> None:
        shown = [[e.number] for e in LOG if e.kind in (EventKind.STATUS, EventKind.ARTIFACT)]
        assert steps(LOG, dialect, Detail.ALL) == shown

    @rows("dialect", NEWER)
    def test_is_the_status_alone_where_the_agent_says_so(self, dialect: str) -> None:
        assert steps(LOG, dialect, Detail.STATES) == [[2], [10], [12], [14]]

    @rows("dialect", OLDER)
    @rows("detail", Detail)
    def test_to_older_dialects_is_that_the_task_ended_or_waits(
        self, dialect: str, detail: str
    ) -> None:
        assert steps(LOG, dialect, detail) == [[10], [14]]

    @rows("state", sorted([*TERMINAL, *INTERRUPTED]))
    def test_to_older_dialects_is_every_such_state(self, state: TaskState) -> None:
        assert steps([status(1, state)], "v03") == [[1]]

    def test_moves_the_cursor_over_what_is_not(self) -> None:
        assert next_step(LOG[:2], "v03", Detail.ALL) == SelectionStep(events=(), through=2)
        assert next_step([], "v10", Detail.ALL) is None

    def test_is_what_an_agent_may_say(self) -> None:
        assert tuple(Detail) == PUSH_EVENTS
        assert Agent.push_events == Detail.COALESCED


class TestPieces:
    @rows("dialect", NEWER)
    def test_of_one_artifact_go_together(self, dialect: str) -> None:
        expected = [[2], [3, 4, 6], [7], [9], [10], [12], [13], [14]]
        assert steps(LOG, dialect) == expected

    def test_wait_for_the_rest(self) -> None:
        assert next_step([piece(1, append=False), piece(2)], "v10", Detail.COALESCED) is None
        assert next_step([piece(1), said(2)], "v10", Detail.COALESCED) is None

    def test_wait_behind_what_is_skipped_not_before_it(self) -> None:
        step = next_step([said(1), piece(2)], "v10", Detail.COALESCED)
        assert step == SelectionStep(events=(), through=1)

    @rows("end", [status(3), piece(3, "b"), piece(3, append=False), said(3, EventKind.MESSAGE)])
    def test_wait_no_longer_than_to_something_else(self, end: LogEvent) -> None:
        assert steps([piece(1, append=False), piece(2), end])[0] == [1, 2]

    def test_that_are_whole_wait_for_nothing(self) -> None:
        assert steps([piece(1, append=False, last=True)]) == [[1]]
        assert steps([piece(1, append=False), piece(2, last=True)]) == [[1, 2]]

    def test_go_as_they_are_when_there_is_no_patience(self) -> None:
        pieces = [piece(1, append=False), piece(2)]
        step = next_step(pieces, "v10", Detail.COALESCED, patient=False)
        assert step == SelectionStep(events=tuple(pieces), through=2)

    def test_go_when_they_are_too_much_for_one_body(self) -> None:
        large = "x" * (MAX_JOINED_BYTES // 3)
        log = [piece(number, text=large, append=number > 1) for number in range(1, 8)]
        sent = steps(log)
        assert sent == [[1, 2], [3, 4], [5, 6]]

    def test_that_alone_are_too_much_go_alone(self) -> None:
        log = [piece(1, text="x" * MAX_JOINED_BYTES, append=False), piece(2)]
        assert steps(log) == [[1]]


class TestJoining:
    def test_makes_one_update_of_the_pieces(self) -> None:
        first = LogEvent(
            number=3,
            kind=EventKind.ARTIFACT,
            body='{"artifact":{"artifactId":"a","name":"n","parts":[{"data":1e5}],"metadata":{"k":1}},"metadata":{"x":1,"y":1}}',
        )
        second = LogEvent(
            number=5,
            kind=EventKind.ARTIFACT,
            body='{"artifact":{"artifactId":"a","parts":[{"text":"é"},{"url":"u"}]},"append":true,"lastChunk":true,"metadata":{"y":2}}',
        )
        found = join([first, second])
        assert found.number == 5
        assert json.loads(found.body) == {
            "artifact": {
                "artifactId": "a",
                "name": "n",
                "parts": [{"data": 1e5}, {"text": "é"}, {"url": "u"}],
                "metadata": {"k": 1},
            },
            "lastChunk": True,
            "metadata": {"x": 1, "y": 2},
        }

    def test_of_later_pieces_still_appends(self) -> None:
        assert json.loads(join([piece(4), piece(5)]).body)["append"] is True

    def test_of_one_is_that_one(self) -> None:
        assert join([piece(1)]) is not None
        assert join([one := piece(1)]) is one


def logs() -> st.SearchStrategy[list[LogEvent]]:
    """Any logs of pieces, statuses and what is not shown."""
    kinds = st.sampled_from(["a", "b", "status", "input"])
    wishes = st.lists(st.tuples(kinds, st.booleans(), st.booleans()), max_size=25)
    return wishes.map(
        lambda wished: [_made(number, *wish) for number, wish in enumerate(wished, start=1)]
    )


def _made(number: int, kind: str, append: bool, last: bool) -> LogEvent:
    if kind == "status":
        return status(number)
    if kind == "input":
        return said(number)
    return piece(number, kind, f"{number}", append=append, last=last)


class TestTheLaw:
    @given(logs(), st.sampled_from(Detail), st.sampled_from([*OLDER, *NEWER]))
    def test_each_event_is_sent_once_at_most_and_in_order(
        self, log: list[LogEvent], detail: str, dialect: str
    ) -> None:
        sent = [number for step in steps(log, dialect, detail) for number in step]
        assert sent == sorted(set(sent))

    @given(logs(), st.sampled_from(NEWER))
    def test_a_log_that_ended_is_sent_whole_however_it_is_joined(
        self, log: list[LogEvent], dialect: str
    ) -> None:
        ended = [*log, status(len(log) + 1, S.COMPLETED)]
        every, together = steps(ended, dialect, Detail.ALL), steps(ended, dialect)
        assert [n for step in together for n in step] == [n for step in every for n in step]

    @given(logs())
    def test_joined_artifacts_are_those_of_the_task(self, log: list[LogEvent]) -> None:
        ended = [*log, status(len(log) + 1, S.COMPLETED)]
        by_number = {event.number: event for event in ended}
        sent = [join([by_number[number] for number in step]) for step in steps(ended)]
        assert assemble(e.body for e in sent if e.kind is EventKind.ARTIFACT) == assemble(
            e.body for e in log if e.kind is EventKind.ARTIFACT
        )

    @given(logs(), st.integers(1, 25), st.sampled_from(Detail))
    def test_it_does_not_matter_when_one_looks(
        self, log: list[LogEvent], at: int, detail: str
    ) -> None:
        """Whatever was sent of the beginning is sent of the whole, too: the rest only comes later."""
        early, whole = steps(log[:at], "v10", detail), steps(log, "v10", detail)
        assert whole[: len(early)] == early
