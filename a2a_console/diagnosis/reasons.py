"""The diagnosis of a task: a sentence that names the cause of the wait, and the next thing that happens, with its time.

`reason` combines the facts of the store (`diagnosis/facts.py`) with the rules of the host, and is pure. The first
reason that holds counts. The kinds of reasons never change (`DiagnosisKind`): docs/console.md tells operators by
kind what to do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from a2a_console.diagnosis.call_tree import CalledTask, find_leaf
from a2a_console.diagnosis.facts import (
    COUNTED,
    LostWorker,
    Needs,
    QueuePosition,
    Reason,
    RowLink,
    RunAt,
    TaskFacts,
    load_facts,
)
from a2a_console.diagnosis.webhooks import explain_deliveries
from a2a_console.times import duration
from a2a_tasks.agents import registry
from a2a_tasks.conf import conf
from a2a_tasks.execution.slots import KEPT
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.quarantine import Quarantine

__all__ = [
    "HostRules",
    "DiagnosisKind",
    "RowLink",
    "Needs",
    "Reason",
    "Diagnosis",
    "reason",
    "diagnose",
]

#: The number of poll intervals after which a queue that no process has polled counts as unserved.
LOOKS = 10


class DiagnosisKind(enum.StrEnum):
    """The kinds of reasons for the state of a task."""

    ENDED = "ended"  #: the task has ended, and nothing more happens
    STOPPING = "stopping"  #: the task was cancelled, and its agent is being stopped
    INPUT = "input"  #: the agent asked the client for something
    CREDENTIALS = "credentials"  #: the agent asked the client for credentials
    IDLE = "idle"  #: no run works on it and no question is open
    WORKING = "working"  #: a process is at work
    SLEEPING = "sleeping"  #: the agent waits in a step, in its process
    BUDGET = "budget"  #: a budget has nothing left for it
    CALLS = "calls"  #: the agent waits for another one that it has called
    PARKED = "parked"  #: the agent waits in a step and holds no slot
    LOST = "lost"  #: its process sends no more heartbeats
    SCHEDULED = "scheduled"  #: the next attempt is due later
    NO_AGENT = "no-agent"  #: no process hosts its agent
    NO_WORKER = "no-worker"  #: no process serves its queue
    LIMIT = "limit"  #: its agent has as many active runs as operators allow
    SHARE = "share"  #: its tenant has as many active runs as it may
    SLOTS = "slots"  #: all slots of the processes are in use
    QUARANTINE = "quarantine"  #: processes that ran it died, so it runs alone or beside few others
    CONVERSATION = "conversation"  #: an earlier run of its conversation goes first
    LINE = "line"  #: other runs go first
    DUE = "due"  #: the run begins at any moment


#: The kinds of reasons of a task that may wait for another one, whose reason is shown in its place.
WAITS_FOR_CALLS = frozenset(
    {
        DiagnosisKind.PARKED,
        DiagnosisKind.WORKING,
        DiagnosisKind.SLEEPING,
        DiagnosisKind.INPUT,
        DiagnosisKind.CREDENTIALS,
    }
)


@dataclass(frozen=True, kw_only=True)
class Diagnosis(Reason):
    """The reason for the state of a task, and the reasons why its webhooks wait."""

    also: tuple[Reason, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class HostRules:
    """The rules of the host for one agent."""

    #: True if this process knows the agent; true if the settings enable it; the queue of its runs.
    hosted: bool = True
    is_on: bool = True
    queue: str = "agents"
    after_crash: str = "resume"
    max_attempts: int = 3
    slots_per_tenant: int = 0
    poll_seconds: float = 1.0
    stop_seconds: float = 8.0
    orphan_seconds: float = 60.0


def diagnose(task: int) -> Diagnosis:
    """Diagnose the task with this primary key. The caller has checked permissions. Raises TaskNotFound."""
    found = load_facts(task)
    if found is None:
        raise TaskNotFound(taskId=str(task))
    found_reason = reason(found, _host(found.agent))
    if found_reason.kind in WAITS_FOR_CALLS and (called := find_leaf(task)) is not None:
        found_reason = _explain_call(called) or found_reason
    values = {field.name: getattr(found_reason, field.name) for field in fields(Reason)}
    return Diagnosis(**values, also=tuple(explain_deliveries(task)))


def _explain_call(called: CalledTask) -> Reason | None:
    """Return the reason of a task that waits for another one, which waits for no other; None if that one is gone."""
    found = load_facts(called.key)
    if found is None:
        return None
    inner = reason(found, _host(found.agent))
    return replace(
        inner,
        kind=DiagnosisKind.CALLS,
        sentence=f"Waits for the task {called.public_id} of {called.agent}. {inner.sentence}",
        link=RowLink("a2a_tasks.task", called.key),
    )


def _host(slug: str) -> HostRules:
    agent = registry.find_hosted(slug)
    return HostRules(
        hosted=agent is not None,
        is_on=agent is not None and slug not in registry.list_disabled(),
        queue=agent.queue if agent else "",
        after_crash=agent.after_crash if agent else "resume",
        max_attempts=int(conf.MAX_ATTEMPTS),
        slots_per_tenant=int(conf.RUN_SLOTS_PER_TENANT),
        poll_seconds=float(conf.POLL_SECONDS),
        stop_seconds=float(conf.STOP_SECONDS),
        orphan_seconds=float(conf.ORPHAN_SECONDS),
    )


def reason(at: TaskFacts, host: HostRules) -> Reason:
    """Return the reason for the state of the task."""
    return next(_reasons(at, host))


def _reasons(at: TaskFacts, host: HostRules) -> Iterator[Reason]:
    if at.state in TERMINAL:
        yield from _say_ended(at, host)
    elif at.run is None:
        yield from _without_run(at, host)
    elif at.line is None:
        yield from _explain_held(at, at.run, host)
    else:
        yield from _explain_queued(at, at.run, at.line, host)


def _say_ended(at: TaskFacts, host: HostRules) -> Iterator[Reason]:
    ended = at.run.ended_at if at.run else None
    gone = ended and ended + timedelta(seconds=host.stop_seconds)
    if at.run and gone and gone > at.now:
        yield Reason(
            kind=DiagnosisKind.STOPPING,
            sentence=f"Canceled {_ago(at.since, at)}. The agent on {at.run.worker} was told to stop.",
            next=f"If the agent does not stop, it is interrupted; the host stops waiting for it in {duration(gone - at.now)}.",
            at=gone,
            link=_run(at.run),
        )
    yield Reason(
        kind=DiagnosisKind.ENDED,
        sentence=f"Ended {_ago(at.since, at)}: {at.state.word}.",
        next="Nothing more happens.",
    )


def _without_run(at: TaskFacts, host: HostRules) -> Iterator[Reason]:
    if at.state in INTERRUPTED and not _is_on(at, host):
        yield Reason(
            kind=DiagnosisKind.NO_AGENT,
            sentence=f"Waiting for the client for {_since(at)}, but the agent {at.agent} is disabled.",
            next="No message reaches the task until the agent is enabled. The task can be canceled.",
            needs=Needs.OPERATOR,
        )
    if at.state in INTERRUPTED:
        yield _make_question(at, f"{_say_wanted(at)}.")
    yield Reason(
        kind=DiagnosisKind.IDLE,
        sentence=f"Idle for {_since(at)}: the task has not ended, no run works on it, and no input was requested.",
        next="Nothing happens until the client sends another message or the task is canceled.",
        needs=Needs.OPERATOR,
    )


def _is_on(at: TaskFacts, host: HostRules) -> bool:
    return host.is_on and at.switch.state != "off"


def _say_wanted(at: TaskFacts) -> str:
    what = "credentials" if at.state is TaskState.AUTH_REQUIRED else "input"
    return f"Waiting for {what} from the client for {_since(at)}"


def _make_question(at: TaskFacts, sentence: str) -> Reason:
    return Reason(
        kind=DiagnosisKind.CREDENTIALS
        if at.state is TaskState.AUTH_REQUIRED
        else DiagnosisKind.INPUT,
        sentence=sentence,
        next="The client sends a message, or a user cancels the task. The host waits without a limit.",
        needs=Needs.CLIENT,
    )


# --- held by a process


def _explain_held(at: TaskFacts, run: RunAt, host: HostRules) -> Iterator[Reason]:
    left = run.lease_until - at.now if run.lease_until else timedelta()
    if left <= timedelta():
        yield Reason(
            kind=DiagnosisKind.LOST,
            sentence=f"No heartbeat from {run.worker or 'the worker'}: the lease ended {duration(-left)} ago.{_behind(run)}",
            next=_capitalize(_after_death(run, host)),
            at=at.now + timedelta(seconds=host.poll_seconds),
            link=_run(run),
        )
    if at.state in INTERRUPTED:
        yield _make_question(at, f"{_say_wanted(at)}; the agent has not returned yet.")
    if at.nap is not None:
        yield Reason(
            kind=DiagnosisKind.SLEEPING,
            sentence=f"Sleeping in the step {at.nap.name} for another {duration(at.nap.until - at.now)}.{_behind(run)}",
            next="The agent continues then. If its worker dies, another worker takes over the sleep.",
            at=at.nap.until,
            link=_run(run),
        )
    yield Reason(
        kind=DiagnosisKind.WORKING,
        sentence=f"Running on {run.worker}{_for(at, run)} (attempt {run.attempt} of {host.max_attempts}).{_silence(at)}{_say_switched(at, host)}{_behind(run)}",
        next=f"The lease ends in {duration(left)} unless the worker renews it. After that: {_after_death(run, host)}",
        at=run.lease_until,
        link=_run(run),
    )


def _after_death(run: RunAt, host: HostRules) -> str:
    looks = "as soon as another worker looks for expired leases"
    if host.after_crash == "fail":
        return f'the task fails {looks} (the agent says after_crash = "fail").'
    begins = f"attempt {run.attempt + 1} begins {looks}"
    if run.deaths + 1 < host.max_attempts:
        return f"{begins}."
    return f"{begins}, or the task fails if its worker ran nothing else and made no progress."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _for(at: TaskFacts, run: RunAt) -> str:
    return f" for {duration(at.now - run.started_at)}" if run.started_at else ""


def _silence(at: TaskFacts) -> str:
    return f" Last output {_ago(at.spoke_at, at)}." if at.spoke_at else ""


# --- waiting for a process


def _explain_queued(
    at: TaskFacts, run: RunAt, line: QueuePosition, host: HostRules
) -> Iterator[Reason]:
    attempt = f"attempt {run.attempt + 1}"
    if at.spent and run.due_at > at.now:
        anew = f"The budget resets in {duration(run.due_at - at.now)}, and then {attempt} goes on."
        asks = f"{attempt.capitalize()} goes on when an operator allows more in the inbox."
        yield Reason(
            kind=DiagnosisKind.BUDGET,
            sentence=f"Waits, because the budget {at.spent.name} is spent: {at.spent.amounts}. It holds no slot.{_behind(run)}",
            next=asks if at.spent.asks else anew,
            at=run.due_at if at.spent.begins_anew else None,
            needs=Needs.OPERATOR if at.spent.asks else Needs.NOBODY,
            link=RowLink("a2a_tasks.budgetuse", at.spent.key),
        )
    if run.is_parked and run.due_at > at.now:
        task = f"when the task {at.awaited} has ended or asks its client, and at the latest "
        yield Reason(
            kind=DiagnosisKind.PARKED,
            sentence=f"Parked in the step {run.parked_in} for another {duration(run.due_at - at.now)}"
            f"{f', or until the task {at.awaited} has ended' if at.awaited else ''}. It holds no slot.{_behind(run)}",
            next=f"A worker wakes it {task if at.awaited else ''}at that time, and {attempt} goes on after the step.",
            at=run.due_at,
            link=_run(run),
        )
    if run.due_at > at.now:
        yield Reason(
            kind=DiagnosisKind.SCHEDULED,
            sentence=f"Scheduled: due in {duration(run.due_at - at.now)}.{_behind(run)}",
            next=f"Then {attempt} begins.",
            at=run.due_at,
            link=_run(run),
        )
    if at.before:
        others = at.before.count - 1
        also = f" and {_count(others)} more {'run' if others == 1 else 'runs'}" if others else ""
        yield Reason(
            kind=DiagnosisKind.CONVERSATION,
            sentence=f"Waits for the task {at.before.task}{also} of its conversation: "
            f"the agent {at.agent} answers one message of a conversation at a time.{_behind(run)}",
            next=f"When they have ended or ask for input, {attempt} begins."
            if others
            else f"When that task has ended or asks for input, {attempt} begins.",
            link=RowLink("a2a_tasks.run", at.before.key),
        )
    yield from _explain_unserved(at, run, line, host)
    if not (line.hosting or (host.hosted and not line.processes)):
        yield Reason(
            kind=DiagnosisKind.NO_AGENT,
            sentence=f"No live worker has the agent {at.agent}; the run has been due for {duration(at.now - run.due_at)}.",
            next="A worker that has the agent begins the run. Without one the task fails.",
            at=run.due_at + timedelta(seconds=host.orphan_seconds),
            needs=Needs.OPERATOR,
            link=_run(run),
        )
    yield from _explain_limited(at, run, line, attempt)
    if run.shared_deaths >= Quarantine.GROUP:
        alone = run.shared_deaths >= Quarantine.PROCESS
        yield Reason(
            kind=DiagnosisKind.QUARANTINE,
            sentence=f"Workers that ran it beside other runs died {run.shared_deaths} times in a row, "
            f"so it runs {'alone in a worker' if alone else 'in a small group'}.{_behind(run)}",
            next=f"When a worker has room, {attempt} begins.",
            link=_run(run),
        )
    yield from _explain_position(at, run, line, host, attempt)
    yield Reason(
        kind=DiagnosisKind.DUE,
        sentence=f"Due for {duration(at.now - run.due_at)}.{_say_switched(at, host)}{_behind(run)}",
        next=f"The next worker that polls begins {attempt}.",
        at=at.now + timedelta(seconds=host.poll_seconds),
        link=_run(run),
    )


def _explain_unserved(
    at: TaskFacts, run: RunAt, line: QueuePosition, host: HostRules
) -> Iterator[Reason]:
    """Detect a queue without live workers, for longer than one process needs to replace another."""
    patience = timedelta(seconds=LOOKS * host.poll_seconds)
    if line.processes or at.now - run.due_at <= patience:
        return
    if line.version:
        yield _explain_missing_environment(at, run, line, host)
    else:
        yield Reason(
            kind=DiagnosisKind.NO_WORKER,
            sentence=f"No live worker serves the queue {run.queue}; the run has been due for {duration(at.now - run.due_at)}."
            f"{_last(line.last)}{_say_moved(at, run, host)}{_behind(run)}",
            next=f"The run begins when a worker for the queue {run.queue} starts.",
            needs=Needs.OPERATOR,
            link=_run(run),
        )


def _explain_missing_environment(
    at: TaskFacts, run: RunAt, line: QueuePosition, host: HostRules
) -> Reason:
    where = (
        f"the environment {line.environment} has to start one"
        if line.environment
        else "this version was removed"
    )
    fails = line.when_version_is_gone == "fail"
    return Reason(
        kind=DiagnosisKind.NO_WORKER,
        sentence=f"No live worker has version {line.version} of the agent {at.agent}: {where}. "
        f"The run has been due for {duration(at.now - run.due_at)}.{_last(line.last)}{_behind(run)}",
        next="Without a worker the task fails."
        if fails
        else f"The run begins when a worker with this version starts, or when its conversation is moved to another version: "
        f"manage.py agent_versions move {at.agent} {line.version} ANOTHER",
        at=run.due_at + timedelta(seconds=host.orphan_seconds) if fails else None,
        needs=Needs.OPERATOR,
        link=_run(run),
    )


def _last(gone: LostWorker | None) -> str:
    if gone is None:
        return ""
    if gone.draining:
        return f" {gone.name} is draining and takes nothing new."
    return f" {gone.name} did; its last heartbeat came {duration(gone.silence)} ago."


def _say_moved(at: TaskFacts, run: RunAt, host: HostRules) -> str:
    queue = at.switch.queue or host.queue
    if queue in {"", run.queue}:
        return ""
    return f" New runs of the agent wait in the queue {queue}; earlier runs stay where they are."


def _say_switched(at: TaskFacts, host: HostRules) -> str:
    if not _is_on(at, host):
        return f" The agent {at.agent} is disabled; accepted tasks continue."
    if at.switch.state == "draining":
        return f" The agent {at.agent} is draining and takes no new tasks; accepted tasks continue."
    return ""


def _explain_limited(
    at: TaskFacts, run: RunAt, line: QueuePosition, attempt: str
) -> Iterator[Reason]:
    limit = at.switch.max_running
    if limit == 0:
        yield Reason(
            kind=DiagnosisKind.LIMIT,
            sentence=f"The run limit of the agent {at.agent} is 0, so no run begins.{_behind(run)}",
            next=f"When an operator raises the limit, {attempt} begins in its turn.",
            needs=Needs.OPERATOR,
            link=_run(run),
        )
    elif limit is not None and line.running_of_agent >= limit:
        yield Reason(
            kind=DiagnosisKind.LIMIT,
            sentence=f"The agent {at.agent} has {_count(line.running_of_agent)} active runs, "
            f"and its limit is {limit}.{_behind(run)}",
            next=f"When one of them ends, the next run of the agent begins; {attempt} in its turn.",
            link=_run(run),
        )


def _explain_position(
    at: TaskFacts, run: RunAt, line: QueuePosition, host: HostRules, attempt: str
) -> Iterator[Reason]:
    first = f"{_others(run, line)}{_say_switched(at, host)}{_behind(run)}"
    if line.processes and line.running >= line.slots:
        yield Reason(
            kind=DiagnosisKind.SLOTS,
            sentence=f"All {_count(line.running)} run slots of {_count_workers(line.processes)} are in use. {first}",
            next=f"When one of them ends, the next queued run begins; {attempt} in its turn.",
            link=_run(run),
        )
    if line.processes and line.running_with_key >= _limit_per_key(line, host):
        yield Reason(
            kind=DiagnosisKind.SHARE,
            sentence=f"{_whose(run)} has {_count(line.running_with_key)} active runs, which is its share. {first}",
            next=f"When one of them ends, its next queued run begins; {attempt} in its turn.",
            link=_run(run),
        )
    if line.ahead:
        yield Reason(
            kind=DiagnosisKind.LINE,
            sentence=first,
            next=f"After them, {attempt} begins.",
            link=_run(run),
        )


def _limit_per_key(line: QueuePosition, host: HostRules) -> int:
    """Return the number of active runs that a quota key may have, as `execution.slots` computes it for each process."""
    kept = KEPT * (line.slots - line.running)
    return min(kept, host.slots_per_tenant * line.processes or kept)


def _others(run: RunAt, line: QueuePosition) -> str:
    if not line.ahead:
        return f"First in the queue {run.queue}."
    runs = "run is" if line.ahead == 1 else "runs are"
    return f"{_count(line.ahead)} {runs} ahead in the queue {run.queue}, {_count(line.ahead_with_key)} of them from {_whose(run)}."


# --- words


def _whose(run: RunAt) -> str:
    kind, _, name = run.quota_key.partition(":")
    return f"tenant {name}" if kind == "tenant" else run.quota_key or "callers without credentials"


def _count_workers(count: int) -> str:
    return "one worker" if count == 1 else f"{count} workers"


def _count(number: int) -> str:
    return f"{number}+" if number >= COUNTED else str(number)


def _behind(run: RunAt) -> str:
    if not run.behind:
        return ""
    waits = "message from the client waits" if run.behind == 1 else "messages from the client wait"
    return f" {_count(run.behind)} more {waits} after it."


def _run(run: RunAt) -> RowLink:
    return RowLink("a2a_tasks.run", run.key)


def _since(at: TaskFacts) -> str:
    return duration(at.now - at.since)


def _ago(moment: datetime, at: TaskFacts) -> str:
    return f"{duration(at.now - moment)} ago"
