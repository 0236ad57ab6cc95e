"""Why is it stuck? What a task waits for, in a sentence; what happens next, and when.

The store knows the facts (`store/situation.py`), the host its rules; `reason` makes one of both, and is pure. The first
that holds is said. What sentences are about is the same for ever (`Kind`): docs/operating.md tells operators by it what to do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from a2a_tasks.agents import registry
from a2a_tasks.conf import conf
from a2a_tasks.durations import duration
from a2a_tasks.execution.slots import KEPT
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.situation import (
    COUNTED,
    Gone,
    Line,
    Link,
    Needs,
    Reason,
    RunAt,
    Situation,
    others,
    situation,
)

__all__ = ["Host", "Kind", "Link", "Needs", "Reason", "Standing", "reason", "standing"]

#: Looks at the table that processes have missed when they are not there at all.
LOOKS = 10


class Kind(enum.StrEnum):
    """What a task may stand at."""

    ENDED = "ended"  #: nothing more happens to it
    STOPPING = "stopping"  #: it was cancelled, and its agent is being stopped
    INPUT = "input"  #: the agent asked the client for something
    CREDENTIALS = "credentials"  #: the agent asked the client for credentials
    IDLE = "idle"  #: nobody works for it and nobody is asked
    WORKING = "working"  #: a process is at work
    SLEEPING = "sleeping"  #: the agent waits in a step
    LOST = "lost"  #: its process is no longer heard of
    SCHEDULED = "scheduled"  #: the next attempt has its time
    NO_AGENT = "no-agent"  #: no such agent is here
    NO_WORKER = "no-worker"  #: no process serves its queue
    LIMIT = "limit"  #: as many runs of its agent are under way as operators let
    SHARE = "share"  #: its tenant has as much under way as it may
    SLOTS = "slots"  #: the processes have as much under way as they can
    QUARANTINE = "quarantine"  #: processes that carried it died, so few are begun at once
    LINE = "line"  #: others go first
    DUE = "due"  #: it begins at any moment


@dataclass(frozen=True, kw_only=True)
class Standing(Reason):
    """Why the task stands as it does, and what others know of things beside it that wait, too."""

    also: tuple[Reason, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The host's rules, as they are for one agent."""

    #: Is the agent known to this process, do the settings have it on, and where do its runs wait?
    hosted: bool = True
    is_on: bool = True
    queue: str = "agents"
    after_crash: str = "resume"
    max_attempts: int = 3
    slots_per_tenant: int = 0
    poll_seconds: float = 1.0
    stop_seconds: float = 8.0
    orphan_seconds: float = 60.0


def standing(task: int) -> Standing:
    """Tell of the task with this primary key. Whose it is the caller has looked at. Raises TaskNotFound."""
    found = situation(task)
    if found is None:
        raise TaskNotFound(taskId=str(task))
    said = reason(found, _host(found.agent))
    told = {field.name: getattr(said, field.name) for field in fields(Reason)}
    return Standing(**told, also=others(task))


def _host(slug: str) -> Host:
    agent = registry.hosted(slug)
    return Host(
        hosted=agent is not None,
        is_on=agent is not None and slug not in registry.disabled(),
        queue=agent.queue if agent else "",
        after_crash=agent.after_crash if agent else "resume",
        max_attempts=int(conf.MAX_ATTEMPTS),
        slots_per_tenant=int(conf.RUN_SLOTS_PER_TENANT),
        poll_seconds=float(conf.POLL_SECONDS),
        stop_seconds=float(conf.STOP_SECONDS),
        orphan_seconds=float(conf.ORPHAN_SECONDS),
    )


def reason(at: Situation, host: Host) -> Reason:
    """Why it stands as it does."""
    return next(_reasons(at, host))


def _reasons(at: Situation, host: Host) -> Iterator[Reason]:
    if at.state in TERMINAL:
        yield from _ended(at, host)
    elif at.run is None:
        yield from _without_run(at, host)
    elif at.line is None:
        yield from _held(at, at.run, host)
    else:
        yield from _queued(at, at.run, at.line, host)


def _ended(at: Situation, host: Host) -> Iterator[Reason]:
    ended = at.run.ended_at if at.run else None
    gone = ended and ended + timedelta(seconds=host.stop_seconds)
    if at.run and gone and gone > at.now:
        yield Reason(
            kind=Kind.STOPPING,
            sentence=f"It was cancelled {_ago(at.since, at)}, and the agent was told to stop on {at.run.worker}.",
            next=f"If it does not, it is interrupted, and in {duration(gone - at.now)} the host does without it.",
            at=gone,
            link=_run(at.run),
        )
    yield Reason(
        kind=Kind.ENDED,
        sentence=f"It ended {_ago(at.since, at)}: {at.state.word}.",
        next="Nothing more happens to it.",
    )


def _without_run(at: Situation, host: Host) -> Iterator[Reason]:
    if at.state in INTERRUPTED and not _is_on(at, host):
        yield Reason(
            kind=Kind.NO_AGENT,
            sentence=f"It has waited for its client for {_since(at)}, but the agent {at.agent} is switched off.",
            next="No message reaches it until the agent is on again; it can be cancelled.",
            needs=Needs.OPERATOR,
        )
    if at.state in INTERRUPTED:
        yield _asked(at, f"{_wanted(at)}.")
    yield Reason(
        kind=Kind.IDLE,
        sentence=f"Nobody has worked for it for {_since(at)}, though it has not ended, and nobody is asked for anything.",
        next="Nothing, until its client sends another message or it is cancelled.",
        needs=Needs.OPERATOR,
    )


def _is_on(at: Situation, host: Host) -> bool:
    return host.is_on and at.switch.state != "off"


def _wanted(at: Situation) -> str:
    what = "credentials" if at.state is TaskState.AUTH_REQUIRED else "input"
    return f"It has waited for {what} of its client for {_since(at)}"


def _asked(at: Situation, sentence: str) -> Reason:
    return Reason(
        kind=Kind.CREDENTIALS if at.state is TaskState.AUTH_REQUIRED else Kind.INPUT,
        sentence=sentence,
        next="Its client sends a message, or somebody cancels it; the host waits for as long as it takes.",
        needs=Needs.CLIENT,
    )


# --- held by a process


def _held(at: Situation, run: RunAt, host: Host) -> Iterator[Reason]:
    left = run.lease_until - at.now if run.lease_until else timedelta()
    if left <= timedelta():
        yield Reason(
            kind=Kind.LOST,
            sentence=f"{run.worker or 'Its process'} is not heard of: its lease ended {duration(-left)} ago.{_behind(run)}",
            next=_after_death(run, host),
            at=at.now + timedelta(seconds=host.poll_seconds),
            link=_run(run),
        )
    if at.state in INTERRUPTED:
        yield _asked(at, f"{_wanted(at)}, and its agent has not ended its turn.")
    if at.nap is not None:
        yield Reason(
            kind=Kind.SLEEPING,
            sentence=f"The agent sleeps, in the step {at.nap.name}, for another {duration(at.nap.until - at.now)}.{_behind(run)}",
            next="It goes on then; if its process dies, another one sleeps on.",
            at=at.nap.until,
            link=_run(run),
        )
    yield Reason(
        kind=Kind.WORKING,
        sentence=f"{run.worker} is at work on it{_for(at, run)}, attempt {run.attempt}.{_silence(at)}{_switched(at, host)}{_behind(run)}",
        next=f"The agent goes on. Its lease ends in {duration(left)}, unless it is extended; then: {_after_death(run, host)}",
        at=run.lease_until,
        link=_run(run),
    )


def _after_death(run: RunAt, host: Host) -> str:
    looks = "as soon as another process looks for lost runs"
    if host.after_crash == "fail":
        return f"The task fails {looks}: its agent does not want to be run again."
    begins = f"Attempt {run.attempt + 1} begins {looks}"
    if run.deaths + 1 < host.max_attempts:
        return f"{begins}."
    return f"{begins}; or the task fails, if its process carried nothing else and it got no further than before."


def _for(at: Situation, run: RunAt) -> str:
    return f" for {duration(at.now - run.started_at)}" if run.started_at else ""


def _silence(at: Situation) -> str:
    return f" It said something last {_ago(at.spoke_at, at)}." if at.spoke_at else ""


# --- waiting for a process


def _queued(at: Situation, run: RunAt, line: Line, host: Host) -> Iterator[Reason]:
    attempt = f"attempt {run.attempt + 1}"
    if run.due_at > at.now:
        yield Reason(
            kind=Kind.SCHEDULED,
            sentence=f"It waits for its time, which comes in {duration(run.due_at - at.now)}.{_behind(run)}",
            next=f"Then {attempt} begins.",
            at=run.due_at,
            link=_run(run),
        )
    yield from _unserved(at, run, line, host)
    if not (line.hosting or (host.hosted and not line.processes)):
        yield Reason(
            kind=Kind.NO_AGENT,
            sentence=f"No living process has the agent {at.agent}, and nobody took it for {duration(at.now - run.due_at)}.",
            next="Whichever process has the agent begins it; else the task fails, visibly.",
            at=run.due_at + timedelta(seconds=host.orphan_seconds),
            needs=Needs.OPERATOR,
            link=_run(run),
        )
    yield from _limited(at, run, line, attempt)
    if run.shared_deaths >= Quarantine.GROUP:
        alone = run.shared_deaths >= Quarantine.PROCESS
        yield Reason(
            kind=Kind.QUARANTINE,
            sentence=f"Processes that carried it beside others died {run.shared_deaths} times in a row, "
            f"so it begins {'in a process of its own' if alone else 'in a small group'}.{_behind(run)}",
            next=f"When there is room for it, {attempt} begins.",
            link=_run(run),
        )
    yield from _in_line(at, run, line, host, attempt)
    yield Reason(
        kind=Kind.DUE,
        sentence=f"It has been due for {duration(at.now - run.due_at)}.{_switched(at, host)}{_behind(run)}",
        next=f"The next process that looks begins {attempt}.",
        at=at.now + timedelta(seconds=host.poll_seconds),
        link=_run(run),
    )


def _unserved(at: Situation, run: RunAt, line: Line, host: Host) -> Iterator[Reason]:
    """Nobody who is alive takes from the queue, for longer than one process needs to follow another."""
    patience = timedelta(seconds=LOOKS * host.poll_seconds)
    if not line.processes and at.now - run.due_at > patience:
        yield Reason(
            kind=Kind.NO_WORKER,
            sentence=f"No living process takes from the queue {run.queue}, and it has been due for {duration(at.now - run.due_at)}."
            f"{_last(line.last)}{_moved(at, run, host)}{_behind(run)}",
            next=f"It begins when a process for the queue {run.queue} is started.",
            needs=Needs.OPERATOR,
            link=_run(run),
        )


def _last(gone: Gone | None) -> str:
    if gone is None:
        return ""
    if gone.draining:
        return f" {gone.name} ends what it holds, and takes nothing more."
    return f" {gone.name} did, and has said nothing for {duration(gone.silence)}."


def _moved(at: Situation, run: RunAt, host: Host) -> str:
    queue = at.switch.queue or host.queue
    if queue in {"", run.queue}:
        return ""
    return f" What is sent to the agent now waits in the queue {queue}; what waited before stays."


def _switched(at: Situation, host: Host) -> str:
    if not _is_on(at, host):
        return f" The agent {at.agent} is switched off; what was accepted goes on."
    if at.switch.state == "draining":
        return f" The agent {at.agent} takes no new tasks; what was accepted goes on."
    return ""


def _limited(at: Situation, run: RunAt, line: Line, attempt: str) -> Iterator[Reason]:
    most = at.switch.max_running
    if most == 0:
        yield Reason(
            kind=Kind.LIMIT,
            sentence=f"Operators let no run of the agent {at.agent} begin: its limit is 0.{_behind(run)}",
            next=f"When the limit is raised, {attempt} begins in its turn.",
            needs=Needs.OPERATOR,
            link=_run(run),
        )
    elif most is not None and line.running_of_agent >= most:
        yield Reason(
            kind=Kind.LIMIT,
            sentence=f"{_count(line.running_of_agent)} runs of the agent {at.agent} are under way, "
            f"and operators let no more than {most}.{_behind(run)}",
            next=f"When one of them ends the next one of the agent begins; in its turn, {attempt}.",
            link=_run(run),
        )


def _in_line(at: Situation, run: RunAt, line: Line, host: Host, attempt: str) -> Iterator[Reason]:
    first = f"{_others(run, line)}{_switched(at, host)}{_behind(run)}"
    if line.processes and line.running >= line.slots:
        yield Reason(
            kind=Kind.SLOTS,
            sentence=f"{_count(line.running)} runs are under way, as many as {_processes(line.processes)} can carry. {first}",
            next=f"When one of them ends the next one in line begins; in its turn, {attempt}.",
            link=_run(run),
        )
    if line.processes and line.running_of_share >= _bound(line, host):
        yield Reason(
            kind=Kind.SHARE,
            sentence=f"{_whose(run)} has {_count(line.running_of_share)} runs under way, as many as it may. {first}",
            next=f"When one of them ends the next one of its line begins; in its turn, {attempt}.",
            link=_run(run),
        )
    if line.ahead:
        yield Reason(
            kind=Kind.LINE,
            sentence=first,
            next=f"When they have begun, {attempt} begins.",
            link=_run(run),
        )


def _bound(line: Line, host: Host) -> int:
    """How many runs a share may have under way, as `execution.slots` has it for each process."""
    kept = KEPT * (line.slots - line.running)
    return min(kept, host.slots_per_tenant * line.processes or kept)


def _others(run: RunAt, line: Line) -> str:
    if not line.ahead:
        return f"It is the first in line in the queue {run.queue}."
    goes = "run goes" if line.ahead == 1 else "runs go"
    return f"{_count(line.ahead)} {goes} first in the queue {run.queue}, {_count(line.ahead_of_share)} of them of {_whose(run)}."


# --- words


def _whose(run: RunAt) -> str:
    kind, _, name = run.share.partition(":")
    return f"tenant {name}" if kind == "tenant" else run.share or "callers without credentials"


def _processes(count: int) -> str:
    return "one process" if count == 1 else f"{count} processes"


def _count(number: int) -> str:
    return f"{number}+" if number >= COUNTED else str(number)


def _behind(run: RunAt) -> str:
    if not run.behind:
        return ""
    waits = "message of its client waits" if run.behind == 1 else "messages of its client wait"
    return f" {_count(run.behind)} more {waits} behind it."


def _run(run: RunAt) -> Link:
    return Link("a2a_tasks.run", run.key)


def _since(at: Situation) -> str:
    return duration(at.now - at.since)


def _ago(moment: datetime, at: Situation) -> str:
    return f"{duration(at.now - moment)} ago"
