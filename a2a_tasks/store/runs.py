"""The table of runs: claims, heartbeats, hand-backs and rescues. All times are the database's."""

from __future__ import annotations

import dataclasses
import secrets
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Concat, Now

from a2a_tasks import pubsub
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import (
    IS_BEHIND,
    IS_PARKED,
    WAITS_FOR_SLOT,
    Message,
    Run,
    RunStatus,
    Step,
    Task,
)
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, LogEvent
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import clock, event_log
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.backend.rows import update_each
from a2a_tasks.store.backend.server import lock_number
from a2a_tasks.store.backend.statements import allow_rows, of_turns
from a2a_tasks.store.behind import release
from a2a_tasks.store.quarantine import count_death
from a2a_tasks.store.records import CLAIM_BYTES, ClaimedRun, LeaseLost, WantedRuns
from a2a_tasks.store.segments import DIED, HANDED_BACK, EndSegment
from a2a_tasks.telemetry.trace_context import AttemptBefore, note_attempt

__all__ = [
    "LostRuns",
    "claim",
    "give_up",
    "hand_back",
    "fail_unstarted_task",
    "has_more",
    "heartbeat",
    "heartbeat_locked",
    "measure_queue",
    "name_agents",
    "find_held_tokens",
    "note",
    "queue_again",
    "reclaim_expired",
    "read_requests",
    "read_texts",
    "report_crash",
    "take_back_deaths",
    "unclaim",
    "count_unfinished",
    "count_waiting",
]

#: Maximum number of runs claimed or rescued in one transaction.
BATCH = 100
#: The first of the locks under which limited runs are counted, one for each agent.
COUNTING = 0x0A2A << 32
#: Maximum numbers of waiting runs that are counted for a queue's depth, and compared for its age.
MAX_COUNTED, MAX_AGED = 10_000, 1000
#: The columns of a run that a death changes.
COUNTED = (
    "error",
    "request",
    "deaths",
    "shared_deaths",
    "died_at_event",
    "max_events",
    "longest_life",
)
#: Long columns of a run's task that are not needed to queue it again.
UNREAD = ("task__status_message", "task__metadata", "task__memory")


def claim(
    wanted: WantedRuns, *, limit: int, limits: Mapping[str, int] | None = None
) -> list[ClaimedRun]:
    """Claim up to `limit` due runs of these agents: from each queue round by round, and one run of a task at a time.

    Within a round the oldest run comes first. Runs in quarantine are claimed separately. If `wanted.orphans`, runs that
    were due for A2A_ORPHAN_SECONDS while no process with their agent was seen are claimed as well, to be failed.
    `limits` is the maximum number of concurrent runs of an agent on the whole host; runs of these agents come first.
    """
    limits = limits or {}
    room = min(limit, BATCH)
    taken: list[ClaimedRun] = []

    def find_rest() -> WantedRuns | None:
        """Return what is wanted beside what is taken; None = there is no room."""
        most = wanted.most - sum(one.size for one in taken)
        return dataclasses.replace(wanted, most=most) if len(taken) < room and most > 0 else None

    for agent in sorted(limits.keys() & set(wanted.agents)):
        if rest := find_rest():
            taken += _claim_limited(rest, agent, limits[agent], room - len(taken))
    if rest := find_rest():
        others = [agent for agent in wanted.agents if agent not in limits]
        known = {*wanted.agents, *wanted.known, *limits, ""}
        rest = dataclasses.replace(rest, agents=others, known=known)
        taken += backend().claim_runs(rest, room - len(taken))
    return taken


def read_texts(run: ClaimedRun) -> ClaimedRun:
    """Return a run with the texts that its claim has not read. Raises LeaseLost."""
    said = Message.objects.filter(task=run.task, number=run.input_number).values("body")
    own = Run.objects.filter(pk=run.key, token=run.token)
    with allow_rows(run.unread):
        found = own.values_list(Subquery(said), "request", "task__memory").first()
    if found is None:
        raise LeaseLost
    body, request, memory = found
    return dataclasses.replace(run, input=body, request=request, memory=memory, unread=0)


def has_more(taken: Sequence[ClaimedRun], limit: int, most: int = CLAIM_BYTES) -> bool:
    """Return whether there may be more runs to claim than these. A text may have more bytes in the database than here."""
    return len(taken) >= min(limit, BATCH) or sum(one.size for one in taken) >= most / 4


@transaction.atomic
def _claim_limited(wanted: WantedRuns, agent: str, limit: int, room: int) -> list[ClaimedRun]:
    """Claim runs of one agent with at most `limit` concurrent runs. One process at a time counts them."""
    lock_number(COUNTING + zlib.crc32(agent.encode()), wait=True)
    running = Run.objects.filter(status=RunStatus.RUNNING, agent=agent)
    left = limit - len(running.order_by().values_list("pk")[:limit])
    only = dataclasses.replace(wanted, agents=[agent], orphans=False)
    return backend().claim_runs(only, min(room, left)) if left > 0 else []


def name_agents(queues: Collection[str]) -> None:
    """Name the agents of waiting runs that a process of an earlier release has accepted: claims need them."""
    nameless = Run.objects.filter(status=RunStatus.QUEUED, queue__in=queues, agent="")
    if keys := list(nameless.values_list("pk", flat=True)[:MAX_AGED]):
        agent = Task.objects.filter(pk=OuterRef("task")).values("agent")
        Run.objects.filter(pk__in=keys).update(agent=Subquery(agent))


def count_waiting(queue: str, limit: int) -> int:
    """Count the runs that wait for a slot in a queue, up to `limit`."""
    waiting = Run.objects.filter(WAITS_FOR_SLOT, queue=queue)
    return len(waiting.order_by("round", "pk").values_list("pk")[:limit])


def count_unfinished(quota_key: str, limit: int) -> int:
    """Count the waiting and running runs of a quota key, up to `limit`, also those behind others.

    Parked ones count only if they wait for agents that they have called: a tree must not begin without end.
    """
    mine = Run.objects.filter(quota_key=quota_key).values_list("pk")
    # In this order, a run that starts between the two queries is not counted; in the other order it would count twice.
    going = len(mine.filter(status=RunStatus.RUNNING)[:limit])
    waiting = WAITS_FOR_SLOT | IS_BEHIND | Q(IS_PARKED, awaits_calls=True)
    return going + len(mine.filter(waiting)[: limit - going])


def count_by_status() -> dict[str, int]:
    """Count the waiting and running runs, those behind others, and the parked ones, in all queues."""
    unfinished = {
        "queued": WAITS_FOR_SLOT,
        "behind": IS_BEHIND,
        "running": Q(status=RunStatus.RUNNING),
        "parked": IS_PARKED,
    }
    return {status: Run.objects.filter(which).count() for status, which in unfinished.items()}


def measure_queue(queue: str) -> tuple[int, float]:
    """Return the number of runs that wait for a slot, and the seconds since the oldest one became due.

    The number is at most MAX_COUNTED. Each share's oldest run is in its first round, so it is enough to look at the first
    rounds.
    """
    waiting = Run.objects.filter(WAITS_FOR_SLOT, queue=queue).order_by("round", "pk")
    due = waiting[:MAX_AGED].aggregate(oldest=Min("due_at"))["oldest"]
    age = max(0.0, (clock.now() - due).total_seconds()) if due else 0.0
    return waiting[:MAX_COUNTED].count(), age


def heartbeat(tokens: Collection[str], *, runs_in_process: int | None = None) -> set[str]:
    """Extend the leases of these tokens, each by the length in its own row; return the tokens that were extended.

    The others are lost, or another transaction has locked their rows. `runs_in_process` is the number of
    runs that the process holds, if these are not all: it is stored for the case that the process dies.
    """
    count = len(tokens) if runs_in_process is None else runs_in_process
    return backend().extend_leases(tokens, count)


def heartbeat_locked(token: str, *, runs_in_process: int) -> bool:
    """Extend one lease whose row another transaction has locked, and wait for it a moment. False: it took too long."""
    return backend().extend_locked_lease(token, runs_in_process)


def find_held_tokens(runs: Collection[int]) -> set[str]:
    """Return the tokens of those of these runs that are still held, for checks between two heartbeats."""
    running = Run.objects.filter(pk__in=list(runs), status=RunStatus.RUNNING)
    return set(running.values_list("token", flat=True))


def hand_back(tokens: Collection[str], *, tried: Collection[str] = ()) -> None:
    """Queue runs again because this process stops: another process starts them at once.

    The attempt does not count, except for the tokens in `tried`.
    """
    failpoint("worker.draining")
    for queue in _hand_back(tokens, tried):
        pubsub.publish(pubsub.RunQueued(queue))


def _hand_back(tokens: Collection[str], tried: Collection[str]) -> set[str]:
    """Queue all runs again whose rows are not locked, then the others one by one. Returns the queues of all of them."""
    free = _hand_back_unlocked(tokens, tried)
    given = {run.token for run in free}
    locked = Run.objects.filter(token__in=set(tokens) - given, status=RunStatus.RUNNING)
    runs = list(locked.values_list("task_id", "token", "queue"))
    for task, token, _ in runs:
        _hand_back_one(task, token, tried)
    return {run.queue for run in free} | {queue for _, _, queue in runs}


@transaction.atomic
def _hand_back_unlocked(tokens: Collection[str], tried: Collection[str]) -> list[Run]:
    """Queue runs again, except those that another transaction has locked: to wait for several would be a deadlock."""
    found = Run.objects.filter(
        status=RunStatus.RUNNING, token__in=tokens, task__run_token=F("token")
    )
    found = found.select_for_update(of=("self", "task"), skip_locked=True)
    runs = list(found.select_related("task").defer(*UNREAD))
    Task.objects.filter(pk__in=[run.task_id for run in runs]).update(run_token="")
    _end_attempts(runs, tried)
    return runs


@transaction.atomic
def _hand_back_one(task: int, token: str, tried: Collection[str]) -> None:
    """Queue one run again. The row of its task is locked first, as by all who wait for both."""
    if Task.objects.filter(pk=task, run_token=token).update(run_token=""):
        _end_attempts([Run.objects.get(token=token, status=RunStatus.RUNNING)], tried)


def _end_attempts(runs: Sequence[Run], tried: Collection[str]) -> None:
    for run in runs:
        run.request = note_attempt(run.request, AttemptBefore.of(run.token, run.attempt))
        if run.token in tried:
            run.error += f"Attempt {run.attempt} on {run.worker} was stopped with its process.\n"
        else:
            run.attempt -= 1
    _queue_for_next_attempt(runs, HANDED_BACK, ("attempt", "error", "request"))


def _queue_for_next_attempt(runs: Sequence[Run], how: str, changed: Sequence[str]) -> None:
    """Queue locked runs whose attempts have ended, with these columns; the next attempt begins anew.

    It says again what was said before a park, and so replaces what this attempt said after it.
    """
    queued = Run.objects.filter(pk__in=[run.pk for run in runs])
    queued.update(
        status=RunStatus.QUEUED,
        token="",
        lease_until=None,
        due_at=Now(),
        said=0,
        parked_in="",
        past=EndSegment(how),
    )
    update_each(runs, changed)  # after it: the past has the number of the attempt as it was


def unclaim(worker: str, mark: str) -> None:
    """Queue the runs again that this process has claimed under this mark; the claim's answer was lost, no agent has begun."""
    lost = Run.objects.filter(status=RunStatus.RUNNING, worker=worker, token__startswith=mark)
    if tokens := list(lost.values_list("token", flat=True)):
        hand_back(tokens)


def take_back_deaths(attempts: Mapping[int, int]) -> None:
    """Subtract the deaths of attempts, given by run, whose process had not died: it could not reach the database.

    Each attempt is named at most once, after its process has handed it back. Runs that have failed stay failed.
    """
    for run, attempt in attempts.items():
        counted = Run.objects.filter(pk=run, attempt__gte=attempt, deaths__gt=0, ended_at=None)
        error = Concat(
            "error", Value(f"Attempt {attempt} had not died: its process was cut off.\n")
        )
        counted.update(deaths=F("deaths") - 1, error=error)


class LostRuns(NamedTuple):
    """The result of a search for lost runs."""

    queued: int = 0
    #: Keys of runs that have no attempt left.
    spent: Sequence[int] = ()
    #: Keys of runs that another transaction had locked, so that their processes could not extend their leases either.
    locked: Collection[int] = ()


def reclaim_expired(*, max_attempts: int, without: Collection[int] = ()) -> int:
    """Take runs whose lease has ended from their dead processes; return the number of runs.

    They are queued again; after `max_attempts` counted deaths their tasks fail, visibly to the client.
    `without`: keys of runs to skip.
    """
    found = queue_again(max_attempts=max_attempts, without=without)
    return found.queued + sum(give_up(run, max_attempts=max_attempts) for run in found.spent)


def queue_again(
    *, max_attempts: int, without: Collection[int] = (), watched: Collection[int] = ()
) -> LostRuns:
    """Queue the runs whose lease has ended.

    `without`: keys of runs to skip. Runs in `watched` are not queued, but it is reported if they are locked.
    """
    lost = Run.objects.filter(status=RunStatus.RUNNING, lease_until__lt=Now()).order_by("pk")
    others = lost.exclude(pk__in={*without, *watched}).values_list("pk", flat=True)[:BATCH]
    keys = {*others, *lost.filter(pk__in=watched).values_list("pk", flat=True)}
    if not keys:
        return LostRuns()
    failpoint("rescue.found")
    queued, spent, free = _queue_again(lost.filter(pk__in=keys), max_attempts, watched)
    for queue in {run.queue for run in queued}:
        pubsub.publish(pubsub.RunQueued(queue))
    return LostRuns(len(queued), spent, keys - free)


@transaction.atomic
def _queue_again(
    lost: QuerySet[Run], max_attempts: int, watched: Collection[int]
) -> tuple[list[Run], list[int], set[int]]:
    """Return the queued runs, the keys of the runs without an attempt left, and the keys of all that were not locked."""
    # A process that writes for a run locks its task's row. A process that holds this lock now is alive, or is frozen and
    # the database will soon end its session; the other runs must not wait for it.
    lost = lost.select_for_update(of=("self", "task"), skip_locked=True)
    free = list(lost.select_related("task").defer(*UNREAD))
    found = [run for run in free if run.pk not in watched]
    running, stepped = _count_running({run.worker for run in found}), _find_stepped(found)
    for run in found:
        _die(run, _late(run), _count_others(run, running), stepped=run.pk in stepped, lost=True)
    again = [run for run in found if run.deaths < max_attempts]
    Task.objects.filter(pk__in=[run.task_id for run in again]).update(run_token="")
    _save_as_queued(again)
    spent = [run.pk for run in found if run.deaths >= max_attempts]
    return again, spent, {run.pk for run in free}


#: The hints about an attempt that has died, and the context whose next run may be released, if its task has failed.
_Ended = tuple[list[pubsub.Hint], int | None]


def _announce(ended: _Ended | None) -> None:
    hints, context = ended or ([], None)
    for hint in [*hints, *(release(context=context) if context is not None else ())]:
        pubsub.publish(hint)


def give_up(key: int, *, max_attempts: int) -> bool:
    """Fail the task of a lost run without an attempt left. False: its lease was extended, or another process was faster."""
    ended = _give_up_lost(key, max_attempts)
    _announce(ended)
    return ended is not None


@transaction.atomic
def _give_up_lost(key: int, max_attempts: int) -> _Ended | None:
    task = event_log.lock_task(
        pk=Run.objects.values_list("task_id", flat=True).get(pk=key), skip=True
    )
    run = _lock_run(skip=True, pk=key, lease_until__lt=Now())
    if task is None or run is None:
        return None
    others = _count_others(run, _count_running({run.worker}))
    return _fail_attempt(task, run, _late(run), max_attempts, others=others, client="")


def _lock_run(*, skip: bool = False, **which: Any) -> Run | None:
    running = Run.objects.filter(status=RunStatus.RUNNING, **which)
    # A heartbeat waits from now on, or it came before and is visible here.
    return running.select_for_update(skip_locked=skip).first()


def _late(run: Run) -> str:
    ended = run.lease_until.isoformat(timespec="seconds") if run.lease_until else "never"
    return f"its lease ended at {ended}"


def _count_running(names: Collection[str]) -> dict[str, int]:
    """Count the runs in the table that each of these processes still holds."""
    rows = Run.objects.filter(status=RunStatus.RUNNING, worker__in=names)
    return dict(rows.order_by().values_list("worker").annotate(Count("pk")))


def _count_others(run: Run, running: Mapping[str, int]) -> int:
    """Return the number of other runs that its process held: by its last heartbeat, or by the table if that is more."""
    return max(run.runs_in_process, running.get(run.worker, 0), 1) - 1


def _find_stepped(found: Collection[Run]) -> set[int]:
    """Return the keys of those of these runs whose attempt has kept a step."""
    which = of_turns([(run.task_id, run.input_number) for run in found])
    turns = Step.objects.filter(which).order_by()
    kept = turns.values_list("task_id", "input_number").annotate(Max("created_at"))
    newest = {(task, number): at for task, number, at in kept}
    return {
        run.pk
        for run in found
        if (at := newest.get((run.task_id, run.input_number)))
        and run.started_at is not None
        and at >= run.started_at
    }


def report_crash(claimed: ClaimedRun, how: str, *, max_attempts: int) -> None:
    """Record that the run's attempt ended by its own fault: its agent's process died, as `how` describes. The death counts.

    Raises LeaseLost if the run has lost its task.
    """
    _announce(_report_crash(claimed, how, max_attempts))


@transaction.atomic
def _report_crash(claimed: ClaimedRun, how: str, max_attempts: int) -> _Ended:
    task = event_log.lock_task(pk=claimed.task)
    run = _lock_run(pk=claimed.key, token=claimed.token)
    if task is None or run is None:
        raise LeaseLost
    return _fail_attempt(task, run, how, max_attempts, others=0, client=f": {how}")


def _fail_attempt(
    task: Task, run: Run, how: str, max_attempts: int, *, others: int, client: str
) -> _Ended:
    """End an attempt that died: another attempt follows, or the task fails, with a message for its client."""
    run.task, task.run_token = task, ""
    _die(run, how, others, stepped=bool(_find_stepped([run])), lost=not client)
    if run.deaths >= max_attempts:
        failed = pubsub.Committed(task.pk, task.last_event + 1, [_give_up(task, run, client)])
        return [failed], run.ordered_in
    task.save(update_fields=["run_token"])
    _save_as_queued([run])
    return [pubsub.RunQueued(run.queue)], None


def _die(run: Run, how: str, others: int, *, stepped: bool, lost: bool) -> None:
    """Count a death, and describe it in the row; `lost`: its process can tell nobody."""
    count_death(run, run.task.last_event, others=others, stepped=stepped)
    shared = f" with {others} other runs" if others else ""
    run.error += f"Attempt {run.attempt} on {run.worker} died{shared}: {how}.\n"
    begun = run.started_at.timestamp() if lost and run.started_at else 0.0
    run.request = note_attempt(run.request, AttemptBefore.of(run.token, run.attempt, begun))


def _save_as_queued(found: Sequence[Run]) -> None:
    """Queue the runs for their next attempt, with the columns that their deaths have changed."""
    failpoint("rescue.fenced")
    _queue_for_next_attempt(found, DIED, COUNTED)


def read_requests(tasks: Collection[int]) -> dict[int, str]:
    """Return the stored request of the newest run of each of these tasks, given by their keys."""
    newest = Run.objects.filter(task__in=tasks).order_by().values("task").annotate(newest=Max("pk"))
    found = Run.objects.filter(pk__in=newest.values("newest"))
    return dict(found.values_list("task", "request"))


def note(token: str, text: str) -> None:
    """Store the reason why the attempt with this token ends; a rescue adds the time."""
    running = Run.objects.filter(status=RunStatus.RUNNING, token=token)
    running.update(error=Concat(F("error"), Value(f"{text.rstrip()}\n")))


def _give_up(task: Task, run: Run, client: str) -> LogEvent:
    times = "once" if run.attempt == 1 else f"{run.attempt} times"
    run.status, run.token, run.lease_until = RunStatus.FAILED, "", None
    run.ended_at = Now()
    run.error = (
        f"The process running the agent died {times}, and the task was given up.\n{run.error}"
    )
    run.save(update_fields=[*COUNTED, "status", "token", "lease_until", "ended_at"])
    return _fail_task(task, f"The agent was interrupted {times} and was given up{client}.")


def _fail_task(task: Task, text: str) -> LogEvent:
    """Fail a locked task with a message of the host for its client; its queued runs are dropped."""
    behind = Run.objects.filter(task=task, status=RunStatus.QUEUED)
    behind.update(status=RunStatus.DROPPED, ended_at=Now())
    status_message = write(
        {
            "messageId": secrets.token_hex(16),
            "taskId": task.public_id,
            "contextId": task.context.public_id,
            "role": "ROLE_AGENT",
            "parts": [{"text": text}],
        }
    ).decode()
    return event_log.change_state(
        task, TaskState.FAILED, at=event_log.now(), message=status_message
    )


def fail_unstarted_task(task: int, text: str) -> bool:
    """Fail a task whose runs all wait, with a text for its client. False: it has ended, or a run works on it."""
    with transaction.atomic():
        locked = event_log.lock_task(pk=task, skip=True)
        if locked is None or locked.run_token or TaskState(locked.state) in TERMINAL:
            return False
        ordered = set(Run.objects.filter(task=locked).values_list("ordered_in", flat=True))
        recorded = _fail_task(locked, text)
    pubsub.publish(pubsub.Committed(task, recorded.number, [recorded]))
    for context in filter(None, ordered):
        _announce(([], context))
    return True
