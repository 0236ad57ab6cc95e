"""Why a task is stuck: which sentence each situation makes, and what holds for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_console.diagnosis.facts import (
    COUNTED,
    LostWorker,
    QueuePosition,
    RunAt,
    RunBefore,
    SleepingStep,
    SpentSum,
    TaskFacts,
)
from a2a_console.diagnosis.reasons import DiagnosisKind, HostRules, Needs, diagnose, reason
from a2a_tasks.agents.switches import Switch
from a2a_tasks.models import PARKED, RunStatus
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from tests import ROOT
from tests.support.rows import rows

pytestmark = pytest.mark.quick_on("sqlite")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
S, K = TaskState, DiagnosisKind


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def to_come(**span: float) -> datetime:
    return NOW + timedelta(**span)


QUEUED = RunAt(
    key=7,
    status=RunStatus.QUEUED,
    queue="agents",
    quota_key="tenant:acme",
    round=4,
    attempt=0,
    worker="",
    due_at=ago(seconds=30),
    started_at=None,
    lease_until=None,
    ended_at=None,
)
ASLEEP = replace(
    QUEUED, round=PARKED, attempt=1, due_at=NOW + timedelta(hours=1), parked_in="night"
)
SPENT = SpentSum(key=3, name="models", amounts="5.01 USD of 5.00 USD", asks=True, begins_anew=True)
HELD = replace(
    QUEUED,
    status=RunStatus.RUNNING,
    attempt=1,
    worker="box:12",
    started_at=ago(minutes=5),
    lease_until=to_come(seconds=4),
)
CANCELLED = replace(HELD, status=RunStatus.CANCELED, lease_until=None, ended_at=ago(seconds=2))
BEFORE = QueuePosition(
    ahead=41, ahead_with_key=3, running=5, running_with_key=2, processes=2, hosting=2, slots=2000
)


def task(state: TaskState = S.WORKING, **facts: Any) -> TaskFacts:
    return TaskFacts(now=NOW, agent="demo", state=state, since=ago(hours=2), **facts)


@dataclass(frozen=True)
class Said:
    """A situation and a host, and what is said of it: why, what is next, when, and who is needed."""

    at: TaskFacts
    kind: DiagnosisKind
    sentence: str
    then: str
    when: datetime | None = None
    needs: Needs = Needs.NOBODY
    host: HostRules = field(default_factory=HostRules)


TABLE = [
    Said(
        task(run=ASLEEP, line=BEFORE, spent=SPENT),
        K.BUDGET,
        "Waits, because the budget models is spent: 5.01 USD of 5.00 USD. It holds no slot.",
        "Attempt 2 goes on when an operator allows more in the inbox.",
        when=to_come(hours=1),
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=ASLEEP, line=BEFORE, spent=replace(SPENT, asks=False)),
        K.BUDGET,
        "Waits, because the budget models is spent: 5.01 USD of 5.00 USD. It holds no slot.",
        "The budget resets in 1 h, and then attempt 2 goes on.",
        when=to_come(hours=1),
    ),
    Said(task(S.COMPLETED), K.ENDED, "Ended 2 h ago: completed.", "Nothing more happens."),
    Said(
        replace(task(S.CANCELED, run=CANCELLED), since=ago(seconds=2)),
        K.STOPPING,
        "Canceled 2.0 s ago. The agent on box:12 was told to stop.",
        "If the agent does not stop, it is interrupted; the host stops waiting for it in 6.0 s.",
        when=to_come(seconds=6),
    ),
    Said(
        task(S.CANCELED, run=replace(CANCELLED, ended_at=ago(hours=2))),
        K.ENDED,
        "Ended 2 h ago: canceled.",
        "Nothing more happens.",
    ),
    Said(
        task(S.INPUT_REQUIRED),
        K.INPUT,
        "Waiting for input from the client for 2 h.",
        "The client sends a message, or a user cancels the task. The host waits without a limit.",
        needs=Needs.CLIENT,
    ),
    Said(
        task(S.AUTH_REQUIRED),
        K.CREDENTIALS,
        "Waiting for credentials from the client for 2 h.",
        "The client sends a message, or a user cancels the task. The host waits without a limit.",
        needs=Needs.CLIENT,
    ),
    Said(
        task(S.INPUT_REQUIRED),
        K.NO_AGENT,
        "Waiting for the client for 2 h, but the agent demo is disabled.",
        "No message reaches the task until the agent is enabled. The task can be canceled.",
        needs=Needs.OPERATOR,
        host=HostRules(is_on=False),
    ),
    Said(
        task(),
        K.IDLE,
        "Idle for 2 h: the task has not ended, no run works on it, and no input was requested.",
        "Nothing happens until the client sends another message or the task is canceled.",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=ASLEEP, line=BEFORE),
        K.PARKED,
        "Parked in the step night for another 1 h. It holds no slot.",
        "A worker wakes it at that time, and attempt 2 goes on after the step.",
        when=to_come(hours=1),
    ),
    Said(
        replace(task(run=replace(ASLEEP, awaits=9), line=BEFORE), awaited="task-9"),
        K.PARKED,
        "Parked in the step night for another 1 h, or until the task task-9 has ended. It holds no slot.",
        "A worker wakes it when the task task-9 has ended or asks its client, and at the latest at that time, "
        "and attempt 2 goes on after the step.",
        when=to_come(hours=1),
    ),
    Said(
        task(run=HELD, spoke_at=ago(seconds=90)),
        K.WORKING,
        "Running on box:12 for 5 min (attempt 1 of 3). Last output 1 min 30 s ago.",
        "The lease ends in 4.0 s unless the worker renews it. After that: attempt 2 begins as soon as another worker looks for expired leases.",
        when=to_come(seconds=4),
    ),
    Said(
        task(S.INPUT_REQUIRED, run=HELD),
        K.INPUT,
        "Waiting for input from the client for 2 h; the agent has not returned yet.",
        "The client sends a message, or a user cancels the task. The host waits without a limit.",
        needs=Needs.CLIENT,
    ),
    Said(
        task(run=HELD, nap=SleepingStep("night", to_come(hours=3, minutes=5))),
        K.SLEEPING,
        "Sleeping in the step night for another 3 h 5 min.",
        "The agent continues then. If its worker dies, another worker takes over the sleep.",
        when=to_come(hours=3, minutes=5),
    ),
    Said(
        task(run=replace(HELD, lease_until=ago(seconds=3), behind=2)),
        K.LOST,
        "No heartbeat from box:12: the lease ended 3.0 s ago. 2 more messages from the client wait after it.",
        "Attempt 2 begins as soon as another worker looks for expired leases.",
        when=to_come(seconds=1),
    ),
    Said(
        task(run=replace(HELD, lease_until=ago(seconds=3), attempt=3, deaths=2)),
        K.LOST,
        "No heartbeat from box:12: the lease ended 3.0 s ago.",
        "Attempt 4 begins as soon as another worker looks for expired leases, or the task fails if its worker ran nothing else and made no progress.",
        when=to_come(seconds=1),
    ),
    Said(
        task(run=replace(HELD, lease_until=ago(seconds=3))),
        K.LOST,
        "No heartbeat from box:12: the lease ended 3.0 s ago.",
        'The task fails as soon as another worker looks for expired leases (the agent says after_crash = "fail").',
        when=to_come(seconds=1),
        host=HostRules(after_crash="fail"),
    ),
    Said(
        task(run=replace(QUEUED, attempt=1, due_at=to_come(minutes=1)), line=BEFORE),
        K.SCHEDULED,
        "Scheduled: due in 1 min.",
        "Then attempt 2 begins.",
        when=to_come(minutes=1),
    ),
    Said(
        task(run=QUEUED, line=QueuePosition()),
        K.NO_WORKER,
        "No live worker serves the queue agents; the run has been due for 30 s.",
        "The run begins when a worker for the queue agents starts.",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=QUEUED, line=QueuePosition(last=LostWorker("box:12", timedelta(seconds=40)))),
        K.NO_WORKER,
        "No live worker serves the queue agents; the run has been due for 30 s. box:12 did; its last heartbeat came 40 s ago.",
        "The run begins when a worker for the queue agents starts.",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(
            run=QUEUED,
            line=QueuePosition(last=LostWorker("box:12", timedelta(), draining=True)),
            switch=Switch(queue="night"),
        ),
        K.NO_WORKER,
        "No live worker serves the queue agents; the run has been due for 30 s. box:12 is draining and takes nothing new. New runs of the agent wait in the queue night; earlier runs stay where they are.",
        "The run begins when a worker for the queue agents starts.",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=QUEUED, line=QueuePosition(version="2.0", environment="adk")),
        K.NO_WORKER,
        "No live worker has version 2.0 of the agent demo: the environment adk has to start one. The run has been due for 30 s.",
        "The run begins when a worker with this version starts, or when its conversation is moved to another version: manage.py agent_versions move demo 2.0 ANOTHER",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=QUEUED, line=QueuePosition(version="2.0")),
        K.NO_WORKER,
        "No live worker has version 2.0 of the agent demo: this version was removed. The run has been due for 30 s.",
        "The run begins when a worker with this version starts, or when its conversation is moved to another version: manage.py agent_versions move demo 2.0 ANOTHER",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(
            run=QUEUED,
            line=QueuePosition(version="2.0", environment="adk", when_version_is_gone="fail"),
        ),
        K.NO_WORKER,
        "No live worker has version 2.0 of the agent demo: the environment adk has to start one. The run has been due for 30 s.",
        "Without a worker the task fails.",
        when=to_come(seconds=30),
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=QUEUED, line=replace(BEFORE, hosting=0)),
        K.NO_AGENT,
        "No live worker has the agent demo; the run has been due for 30 s.",
        "A worker that has the agent begins the run. Without one the task fails.",
        when=to_come(seconds=30),
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=QUEUED, line=replace(BEFORE, running_of_agent=3), switch=Switch(max_running=3)),
        K.LIMIT,
        "The agent demo has 3 active runs, and its limit is 3.",
        "When one of them ends, the next run of the agent begins; attempt 1 in its turn.",
    ),
    Said(
        task(run=QUEUED, line=BEFORE, switch=Switch(max_running=0)),
        K.LIMIT,
        "The run limit of the agent demo is 0, so no run begins.",
        "When an operator raises the limit, attempt 1 begins in its turn.",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(
            run=replace(QUEUED, attempt=2, shared_deaths=2),
            line=QueuePosition(processes=1, hosting=1, slots=9),
        ),
        K.QUARANTINE,
        "Workers that ran it beside other runs died 2 times in a row, so it runs in a small group.",
        "When a worker has room, attempt 3 begins.",
    ),
    Said(
        task(
            run=replace(QUEUED, attempt=3, shared_deaths=3),
            line=QueuePosition(processes=1, hosting=1, slots=9),
        ),
        K.QUARANTINE,
        "Workers that ran it beside other runs died 3 times in a row, so it runs alone in a worker.",
        "When a worker has room, attempt 4 begins.",
    ),
    Said(
        task(run=QUEUED, line=BEFORE, switch=Switch(state="off", max_running=3)),
        K.LINE,
        "41 runs are ahead in the queue agents, 3 of them from tenant acme. The agent demo is disabled; accepted tasks continue.",
        "After them, attempt 1 begins.",
    ),
    Said(
        task(run=HELD, switch=Switch(state="draining")),
        K.WORKING,
        "Running on box:12 for 5 min (attempt 1 of 3). The agent demo is draining and takes no new tasks; accepted tasks continue.",
        "The lease ends in 4.0 s unless the worker renews it. After that: attempt 2 begins as soon as another worker looks for expired leases.",
        when=to_come(seconds=4),
    ),
    Said(
        task(S.INPUT_REQUIRED, switch=Switch(state="off")),
        K.NO_AGENT,
        "Waiting for the client for 2 h, but the agent demo is disabled.",
        "No message reaches the task until the agent is enabled. The task can be canceled.",
        needs=Needs.OPERATOR,
    ),
    Said(
        task(run=QUEUED, line=replace(BEFORE, running_with_key=4)),
        K.SHARE,
        "tenant acme has 4 active runs, which is its share. 41 runs are ahead in the queue agents, 3 of them from tenant acme.",
        "When one of them ends, its next queued run begins; attempt 1 in its turn.",
        host=HostRules(slots_per_tenant=2),
    ),
    Said(
        task(
            run=QUEUED,
            line=QueuePosition(running=18, running_with_key=18, processes=1, hosting=1, slots=20),
        ),
        K.SHARE,
        "tenant acme has 18 active runs, which is its share. First in the queue agents.",
        "When one of them ends, its next queued run begins; attempt 1 in its turn.",
    ),
    Said(
        task(run=QUEUED, line=replace(BEFORE, running=20, slots=20, ahead=0)),
        K.SLOTS,
        "All 20 run slots of 2 workers are in use. First in the queue agents.",
        "When one of them ends, the next queued run begins; attempt 1 in its turn.",
    ),
    Said(
        task(run=replace(QUEUED, behind=1), line=BEFORE, before=RunBefore(7, "task-6")),
        K.CONVERSATION,
        "Waits for the task task-6 of its conversation: the agent demo answers one message of a conversation at a time."
        " 1 more message from the client waits after it.",
        "When that task has ended or asks for input, attempt 1 begins.",
    ),
    Said(
        task(run=QUEUED, line=QueuePosition(), before=RunBefore(7, "task-6", 3)),
        K.CONVERSATION,
        "Waits for the task task-6 and 2 more runs of its conversation: the agent demo answers one message of a conversation at a time.",
        "When they have ended or ask for input, attempt 1 begins.",
    ),
    Said(
        task(run=replace(QUEUED, quota_key=""), line=replace(BEFORE, ahead=COUNTED)),
        K.LINE,
        "10000+ runs are ahead in the queue agents, 3 of them from callers without credentials.",
        "After them, attempt 1 begins.",
    ),
    Said(
        task(run=replace(QUEUED, behind=1), line=QueuePosition(processes=1, hosting=1, slots=9)),
        K.DUE,
        "Due for 30 s. 1 more message from the client waits after it.",
        "The next worker that polls begins attempt 1.",
        when=to_come(seconds=1),
    ),
]


class TestTheTable:
    @rows("row", TABLE, lambda row: f"{row.kind}: {row.sentence}")
    def test_says_why_what_is_next_when_and_who_is_needed(self, row: Said) -> None:
        said = reason(row.at, row.host)
        assert (said.kind, said.sentence, said.next) == (row.kind, row.sentence, row.then)
        assert (said.at, said.needs) == (row.when, row.needs)

    def test_has_every_kind(self) -> None:
        assert {row.kind for row in TABLE} == set(DiagnosisKind) - {
            DiagnosisKind.CALLS
        }  # see test_call_tree

    def test_is_explained_to_operators(self) -> None:
        guide = ROOT / "docs" / "console.md"
        text = guide.read_text(encoding="utf-8")
        assert [kind for kind in DiagnosisKind if f"| `{kind}` |" not in text] == []


moments = st.timedeltas(timedelta(days=-40), timedelta(days=40)).map(lambda span: NOW + span)
past = st.timedeltas(timedelta(), timedelta(days=40)).map(lambda span: NOW - span)
counts = st.integers(0, COUNTED)
runs = st.builds(
    RunAt,
    key=st.integers(1, 9),
    status=st.sampled_from(RunStatus.values),
    queue=st.just("agents"),
    quota_key=st.sampled_from(["", "tenant:acme", "key:abc"]),
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
    TaskFacts,
    now=st.just(NOW),
    agent=st.just("demo"),
    state=st.sampled_from(TaskState),
    since=past,
    spoke_at=st.none() | past,
    run=st.none() | runs,
    nap=st.none() | st.builds(SleepingStep, st.just("nap"), moments.filter(lambda at: at > NOW)),
    line=st.none()
    | st.builds(
        QueuePosition,
        ahead=counts,
        ahead_with_key=counts,
        running=counts,
        running_with_key=counts,
        running_of_agent=counts,
        processes=st.integers(0, 5),
        hosting=st.integers(0, 5),
        slots=counts,
        last=st.none()
        | st.builds(LostWorker, st.just("box:9"), st.just(timedelta(1)), st.booleans()),
    ),
    switch=st.builds(
        Switch,
        st.sampled_from(["on", "draining", "off"]),
        st.none() | st.integers(0, 9),
        st.sampled_from(["", "night"]),
    ),
)
hosts = st.builds(
    HostRules,
    hosted=st.booleans(),
    is_on=st.booleans(),
    after_crash=st.sampled_from(["resume", "fail"]),
    slots_per_tenant=st.integers(0, 9),
)


class TestEverySituation:
    @given(situations, hosts)
    def test_has_a_reason_in_whole_sentences(self, at: TaskFacts, host: HostRules) -> None:
        said = reason(at, host)
        assert said.kind in set(DiagnosisKind)
        assert said.sentence.endswith(".")
        assert said.next.endswith(".")
        assert "None" not in said.sentence + said.next

    @given(situations, hosts)
    def test_that_has_ended_waits_for_nothing(self, at: TaskFacts, host: HostRules) -> None:
        said = reason(at, host)
        assert (said.kind in {DiagnosisKind.ENDED, DiagnosisKind.STOPPING}) == (
            at.state in TERMINAL
        )

    @given(situations, hosts)
    def test_has_a_next_moment_that_is_still_to_come(self, at: TaskFacts, host: HostRules) -> None:
        said = reason(at, host)
        if (
            said.at is not None and said.kind != DiagnosisKind.NO_AGENT
        ):  # an orphan's moment may have passed
            assert said.at > NOW


@pytest.mark.django_db
def test_a_task_that_is_not_there_stands_nowhere() -> None:
    with pytest.raises(TaskNotFound):
        diagnose(404)
