"""Why a task is stuck: which sentence each situation makes, and what holds for all of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.agents.switches import Switch
from a2a_tasks.models import RunStatus
from a2a_tasks.operations.standing import Host, Kind, Needs, reason, standing
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import situation
from a2a_tasks.store.situation import COUNTED, Gone, Line, Nap, Reason, RunAt, Situation
from tests import ROOT
from tests.support.store.world import held

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
S = TaskState


def ago(**span: float) -> datetime:
    """A moment that has passed."""
    return NOW - timedelta(**span)


def to_come(**span: float) -> datetime:
    """A moment that has not."""
    return NOW + timedelta(**span)


QUEUED = RunAt(
    key=7,
    status=RunStatus.QUEUED,
    queue="agents",
    share="tenant:acme",
    round=4,
    attempt=0,
    worker="",
    due_at=ago(seconds=30),
    started_at=None,
    lease_until=None,
    ended_at=None,
)
HELD = replace(
    QUEUED,
    status=RunStatus.RUNNING,
    attempt=1,
    worker="box:12",
    started_at=ago(minutes=5),
    lease_until=to_come(seconds=4),
)
CANCELLED = replace(HELD, status=RunStatus.CANCELED, lease_until=None, ended_at=ago(seconds=2))
BEFORE = Line(
    ahead=41, ahead_of_share=3, running=5, running_of_share=2, processes=2, hosting=2, slots=2000
)


def task(state: TaskState = S.WORKING, **facts: Any) -> Situation:
    """A task that has been like that for two hours."""
    return Situation(now=NOW, agent="demo", state=state, since=ago(hours=2), **facts)


#: situation, host, kind, the sentence, what comes next, when, who is needed
TABLE: list[tuple[Situation, Host, Kind, str, str, datetime | None, Needs]] = [
    (
        task(S.COMPLETED),
        Host(),
        Kind.ENDED,
        "It ended 2 h ago: completed.",
        "Nothing more happens to it.",
        None,
        Needs.NOBODY,
    ),
    (
        replace(task(S.CANCELED, run=CANCELLED), since=ago(seconds=2)),
        Host(),
        Kind.STOPPING,
        "It was cancelled 2.0 s ago, and the agent was told to stop on box:12.",
        "If it does not, it is interrupted, and in 6.0 s the host does without it.",
        to_come(seconds=6),
        Needs.NOBODY,
    ),
    (
        task(S.CANCELED, run=replace(CANCELLED, ended_at=ago(hours=2))),
        Host(),
        Kind.ENDED,
        "It ended 2 h ago: canceled.",
        "Nothing more happens to it.",
        None,
        Needs.NOBODY,
    ),
    (
        task(S.INPUT_REQUIRED),
        Host(),
        Kind.INPUT,
        "It has waited for input of its client for 2 h.",
        "Its client sends a message, or somebody cancels it; the host waits for as long as it takes.",
        None,
        Needs.CLIENT,
    ),
    (
        task(S.AUTH_REQUIRED),
        Host(),
        Kind.CREDENTIALS,
        "It has waited for credentials of its client for 2 h.",
        "Its client sends a message, or somebody cancels it; the host waits for as long as it takes.",
        None,
        Needs.CLIENT,
    ),
    (
        task(S.INPUT_REQUIRED),
        Host(is_on=False),
        Kind.NO_AGENT,
        "It has waited for its client for 2 h, but the agent demo is switched off.",
        "No message reaches it until the agent is on again; it can be cancelled.",
        None,
        Needs.OPERATOR,
    ),
    (
        task(),
        Host(),
        Kind.IDLE,
        "Nobody has worked for it for 2 h, though it has not ended, and nobody is asked for anything.",
        "Nothing, until its client sends another message or it is cancelled.",
        None,
        Needs.OPERATOR,
    ),
    (
        task(run=HELD, spoke_at=ago(seconds=90)),
        Host(),
        Kind.WORKING,
        "box:12 is at work on it for 5 min, attempt 1. It said something last 1 min 30 s ago.",
        "The agent goes on. Its lease ends in 4.0 s, unless it is extended; "
        "then: Attempt 2 begins as soon as another process looks for lost runs.",
        to_come(seconds=4),
        Needs.NOBODY,
    ),
    (
        task(S.INPUT_REQUIRED, run=HELD),
        Host(),
        Kind.INPUT,
        "It has waited for input of its client for 2 h, and its agent has not ended its turn.",
        "Its client sends a message, or somebody cancels it; the host waits for as long as it takes.",
        None,
        Needs.CLIENT,
    ),
    (
        task(run=HELD, nap=Nap("night", to_come(hours=3, minutes=5))),
        Host(),
        Kind.SLEEPING,
        "The agent sleeps, in the step night, for another 3 h 5 min.",
        "It goes on then; if its process dies, another one sleeps on.",
        to_come(hours=3, minutes=5),
        Needs.NOBODY,
    ),
    (
        task(run=replace(HELD, lease_until=ago(seconds=3), behind=2)),
        Host(),
        Kind.LOST,
        "box:12 is not heard of: its lease ended 3.0 s ago. 2 more messages of its client wait behind it.",
        "Attempt 2 begins as soon as another process looks for lost runs.",
        to_come(seconds=1),
        Needs.NOBODY,
    ),
    (
        task(run=replace(HELD, lease_until=ago(seconds=3), attempt=3, deaths=2)),
        Host(),
        Kind.LOST,
        "box:12 is not heard of: its lease ended 3.0 s ago.",
        "Attempt 4 begins as soon as another process looks for lost runs; or the task fails, "
        "if its process carried nothing else and it got no further than before.",
        to_come(seconds=1),
        Needs.NOBODY,
    ),
    (
        task(run=replace(HELD, lease_until=ago(seconds=3))),
        Host(after_crash="fail"),
        Kind.LOST,
        "box:12 is not heard of: its lease ended 3.0 s ago.",
        "The task fails as soon as another process looks for lost runs: its agent does not want to be run again.",
        to_come(seconds=1),
        Needs.NOBODY,
    ),
    (
        task(run=replace(QUEUED, attempt=1, due_at=to_come(minutes=1)), line=BEFORE),
        Host(),
        Kind.SCHEDULED,
        "It waits for its time, which comes in 1 min.",
        "Then attempt 2 begins.",
        to_come(minutes=1),
        Needs.NOBODY,
    ),
    (
        task(run=QUEUED, line=Line()),
        Host(),
        Kind.NO_WORKER,
        "No living process takes from the queue agents, and it has been due for 30 s.",
        "It begins when a process for the queue agents is started.",
        None,
        Needs.OPERATOR,
    ),
    (
        task(run=QUEUED, line=Line(last=Gone("box:12", timedelta(seconds=40)))),
        Host(),
        Kind.NO_WORKER,
        "No living process takes from the queue agents, and it has been due for 30 s. "
        "box:12 did, and has said nothing for 40 s.",
        "It begins when a process for the queue agents is started.",
        None,
        Needs.OPERATOR,
    ),
    (
        task(
            run=QUEUED,
            line=Line(last=Gone("box:12", timedelta(), draining=True)),
            switch=Switch(queue="night"),
        ),
        Host(),
        Kind.NO_WORKER,
        "No living process takes from the queue agents, and it has been due for 30 s. "
        "box:12 ends what it holds, and takes nothing more. "
        "What is sent to the agent now waits in the queue night; what waited before stays.",
        "It begins when a process for the queue agents is started.",
        None,
        Needs.OPERATOR,
    ),
    (
        task(run=QUEUED, line=replace(BEFORE, hosting=0)),
        Host(),
        Kind.NO_AGENT,
        "No living process has the agent demo, and nobody took it for 30 s.",
        "Whichever process has the agent begins it; else the task fails, visibly.",
        to_come(seconds=30),
        Needs.OPERATOR,
    ),
    (
        task(run=QUEUED, line=replace(BEFORE, running_of_agent=3), switch=Switch(max_running=3)),
        Host(),
        Kind.LIMIT,
        "3 runs of the agent demo are under way, and operators let no more than 3.",
        "When one of them ends the next one of the agent begins; in its turn, attempt 1.",
        None,
        Needs.NOBODY,
    ),
    (
        task(run=QUEUED, line=BEFORE, switch=Switch(max_running=0)),
        Host(),
        Kind.LIMIT,
        "Operators let no run of the agent demo begin: its limit is 0.",
        "When the limit is raised, attempt 1 begins in its turn.",
        None,
        Needs.OPERATOR,
    ),
    (
        task(
            run=replace(QUEUED, attempt=2, shared_deaths=2),
            line=Line(processes=1, hosting=1, slots=9),
        ),
        Host(),
        Kind.QUARANTINE,
        "Processes that carried it beside others died 2 times in a row, so it begins in a small group.",
        "When there is room for it, attempt 3 begins.",
        None,
        Needs.NOBODY,
    ),
    (
        task(
            run=replace(QUEUED, attempt=3, shared_deaths=3),
            line=Line(processes=1, hosting=1, slots=9),
        ),
        Host(),
        Kind.QUARANTINE,
        "Processes that carried it beside others died 3 times in a row, so it begins in a process of its own.",
        "When there is room for it, attempt 4 begins.",
        None,
        Needs.NOBODY,
    ),
    (
        task(run=QUEUED, line=BEFORE, switch=Switch(state="off", max_running=3)),
        Host(),
        Kind.LINE,
        "41 runs go first in the queue agents, 3 of them of tenant acme. "
        "The agent demo is switched off; what was accepted goes on.",
        "When they have begun, attempt 1 begins.",
        None,
        Needs.NOBODY,
    ),
    (
        task(run=HELD, switch=Switch(state="draining")),
        Host(),
        Kind.WORKING,
        "box:12 is at work on it for 5 min, attempt 1. The agent demo takes no new tasks; what was accepted goes on.",
        "The agent goes on. Its lease ends in 4.0 s, unless it is extended; "
        "then: Attempt 2 begins as soon as another process looks for lost runs.",
        to_come(seconds=4),
        Needs.NOBODY,
    ),
    (
        task(S.INPUT_REQUIRED, switch=Switch(state="off")),
        Host(),
        Kind.NO_AGENT,
        "It has waited for its client for 2 h, but the agent demo is switched off.",
        "No message reaches it until the agent is on again; it can be cancelled.",
        None,
        Needs.OPERATOR,
    ),
    (
        task(run=QUEUED, line=replace(BEFORE, running_of_share=4)),
        Host(slots_per_tenant=2),
        Kind.SHARE,
        "tenant acme has 4 runs under way, as many as it may. "
        "41 runs go first in the queue agents, 3 of them of tenant acme.",
        "When one of them ends the next one of its line begins; in its turn, attempt 1.",
        None,
        Needs.NOBODY,
    ),
    (
        task(
            run=QUEUED, line=Line(running=18, running_of_share=18, processes=1, hosting=1, slots=20)
        ),
        Host(),
        Kind.SHARE,
        "tenant acme has 18 runs under way, as many as it may. It is the first in line in the queue agents.",
        "When one of them ends the next one of its line begins; in its turn, attempt 1.",
        None,
        Needs.NOBODY,
    ),
    (
        task(run=QUEUED, line=replace(BEFORE, running=20, slots=20, ahead=0)),
        Host(),
        Kind.SLOTS,
        "20 runs are under way, as many as 2 processes can carry. It is the first in line in the queue agents.",
        "When one of them ends the next one in line begins; in its turn, attempt 1.",
        None,
        Needs.NOBODY,
    ),
    (
        task(run=replace(QUEUED, share=""), line=replace(BEFORE, ahead=COUNTED)),
        Host(),
        Kind.LINE,
        "10000+ runs go first in the queue agents, 3 of them of callers without credentials.",
        "When they have begun, attempt 1 begins.",
        None,
        Needs.NOBODY,
    ),
    (
        task(run=replace(QUEUED, behind=1), line=Line(processes=1, hosting=1, slots=9)),
        Host(),
        Kind.DUE,
        "It has been due for 30 s. 1 more message of its client waits behind it.",
        "The next process that looks begins attempt 1.",
        to_come(seconds=1),
        Needs.NOBODY,
    ),
]


class TestTheTable:
    @pytest.mark.parametrize(
        ("at", "host", "kind", "sentence", "then", "when", "needs"),
        TABLE,
        ids=[f"{row[2]}-{number}" for number, row in enumerate(TABLE)],
    )
    def test_says_why_what_is_next_when_and_who_is_needed(
        self,
        at: Situation,
        host: Host,
        kind: Kind,
        sentence: str,
        then: str,
        when: datetime | None,
        needs: Needs,
    ) -> None:
        said = reason(at, host)
        assert (said.kind, said.sentence, said.next) == (kind, sentence, then)
        assert (said.at, said.needs) == (when, needs)

    def test_has_every_kind(self) -> None:
        assert {row[2] for row in TABLE} == set(Kind)

    def test_is_explained_to_operators(self) -> None:
        guide = ROOT / "docs" / "operating.md"
        text = guide.read_text(encoding="utf-8")
        assert [kind for kind in Kind if f"| `{kind}` |" not in text] == []


moments = st.timedeltas(timedelta(days=-40), timedelta(days=40)).map(lambda span: NOW + span)
past = st.timedeltas(timedelta(), timedelta(days=40)).map(lambda span: NOW - span)
counts = st.integers(0, COUNTED)
runs = st.builds(
    RunAt,
    key=st.integers(1, 9),
    status=st.sampled_from(RunStatus.values),
    queue=st.just("agents"),
    share=st.sampled_from(["", "tenant:acme", "key:abc"]),
    round=counts,
    attempt=st.integers(0, 5),
    worker=st.sampled_from(["", "box:12"]),
    due_at=moments,
    started_at=st.none() | past,
    lease_until=st.none() | moments,
    ended_at=st.none() | past,
    behind=counts,
)
situations = st.builds(
    Situation,
    now=st.just(NOW),
    agent=st.just("demo"),
    state=st.sampled_from(TaskState),
    since=past,
    spoke_at=st.none() | past,
    run=st.none() | runs,
    nap=st.none() | st.builds(Nap, st.just("nap"), moments.filter(lambda at: at > NOW)),
    line=st.none()
    | st.builds(
        Line,
        ahead=counts,
        ahead_of_share=counts,
        running=counts,
        running_of_share=counts,
        running_of_agent=counts,
        processes=st.integers(0, 5),
        hosting=st.integers(0, 5),
        slots=counts,
        last=st.none() | st.builds(Gone, st.just("box:9"), st.just(timedelta(1)), st.booleans()),
    ),
    switch=st.builds(
        Switch,
        st.sampled_from(["on", "draining", "off"]),
        st.none() | st.integers(0, 9),
        st.sampled_from(["", "night"]),
    ),
)
hosts = st.builds(
    Host,
    hosted=st.booleans(),
    is_on=st.booleans(),
    after_crash=st.sampled_from(["resume", "fail"]),
    slots_per_tenant=st.integers(0, 9),
)


class TestEverySituation:
    @given(situations, hosts)
    def test_has_a_reason_in_whole_sentences(self, at: Situation, host: Host) -> None:
        said = reason(at, host)
        assert said.kind in set(Kind)
        assert said.sentence.endswith(".")
        assert said.next.endswith(".")
        assert "None" not in said.sentence + said.next

    @given(situations, hosts)
    def test_that_has_ended_waits_for_nothing(self, at: Situation, host: Host) -> None:
        said = reason(at, host)
        assert (said.kind in {Kind.ENDED, Kind.STOPPING}) == (at.state in TERMINAL)

    @given(situations, hosts)
    def test_has_a_next_moment_that_is_still_to_come(self, at: Situation, host: Host) -> None:
        said = reason(at, host)
        if said.at is not None and said.kind != Kind.NO_AGENT:  # an orphan's moment may have passed
            assert said.at > NOW


@pytest.mark.django_db
class TestOthers:
    def test_say_what_they_know_beside_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        more = Reason(kind="letter", sentence="A letter is late.", next="It comes.")
        monkeypatch.setattr(situation, "_asks", [])
        situation.also(lambda task: [more])
        assert standing(held().task).also == (more,)

    def test_are_asked_of_tasks_that_there_are(self) -> None:
        with pytest.raises(TaskNotFound):
            standing(404)
