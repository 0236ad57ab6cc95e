"""What a host promises while its servers are away, judged by probes: one short task after the other, and the tables.

A criterion looks at what was seen of one run and says in words what was not kept.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.faultlab.lab import Lab

__all__ = ["ANSWER", "POSTGRES", "RECOVERY", "REDIS", "Criterion", "Probe", "Seen"]

#: Seconds after the end of an outage within which all is as before.
RECOVERY = 5.0
#: Longest wait for an answer: A2A_DATABASE_SECONDS, what a cancellation gets on top, and as much as a busy lab takes.
ANSWER = 4.0 + 2.0 + 4.0
#: A neighbour's time is compared with so many seconds at least: less is the machine's noise.
LEAST = 0.5
#: Seconds before the fault within which what it met was begun.
EARLIER = 4.0


# --- what was seen ------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Probe:
    """One attempt to have a short task accepted, and what was answered. Moments in seconds, by the wall."""

    asked: float
    answered: float | None = None
    status: int | None = None
    retry_after: str | None = None

    @property
    def seconds(self) -> float:
        """How long the answer took; since then, if there is none."""
        return (self.answered or time.time()) - self.asked


@dataclass(kw_only=True)
class Seen:
    """What a run's criteria look at."""

    lab: Lab
    probes: list[Probe] = field(default_factory=list)
    injected: float = 0.0
    mended: float = 0.0
    #: The process that was cut off, and when.
    cut_off: tuple[int, float] = (0, 0.0)

    def during(self) -> list[Probe]:
        """Probes asked while the fault lasted."""
        return [probe for probe in self.probes if self.injected <= probe.asked < self.mended]

    def after(self, seconds: float = 0.0) -> list[Probe]:
        """Probes asked so many seconds after its end, and later."""
        return [probe for probe in self.probes if probe.asked >= self.mended + seconds]

    def starts(self, since: float, until: float) -> list[float]:
        """Seconds from accepting to starting, of runs accepted in that span and not started twice."""
        found = self.lab.postgres.execute(
            "select extract(epoch from started_at - created_at)::float8 from a2a_tasks_run"
            " where attempt = 1 and created_at between to_timestamp(%s) and to_timestamp(%s)",
            self.lab.database,
            max(since, until - 60),
            until,
        )
        return sorted(seconds for (seconds,) in found if seconds is not None)

    def took(self, since: float, until: float) -> list[float]:
        """Seconds from accepting to the end, of the probes and their like accepted in that span."""
        found = self.lab.postgres.execute(
            "select extract(epoch from r.ended_at - r.created_at)::float8 from a2a_tasks_run r"
            " join a2a_tasks_task t on t.id = r.task_id where t.agent = 'lab-short'"
            " and r.created_at between to_timestamp(%s) and to_timestamp(%s)",
            self.lab.database,
            max(since, until - 60),
            until,
        )
        return [seconds for (seconds,) in found if seconds is not None]

    def attempts(self) -> list[int]:
        """The attempts of all runs since the fault began."""
        found = self.lab.postgres.execute(
            "select attempt from a2a_tasks_run where created_at > to_timestamp(%s)",
            self.lab.database,
            self.injected - EARLIER,
        )
        return [attempt for (attempt,) in found]

    @property
    def recovery(self) -> float:
        """Seconds from the end of the fault to the last answer that was none, or came later than on this machine before."""
        before = [probe.seconds for probe in self.probes if probe.asked < self.injected]
        usual = max(1.0, 3 * max(before, default=0.0))
        bad = [p for p in self.after() if p.status != 200 or p.seconds > usual]
        return max([(p.answered or time.time()) - self.mended for p in bad], default=0.0)

    def figures(self) -> dict[str, Any]:
        """What is worth telling of any run."""
        during, starts = self.during(), self.starts(self.injected, self.mended)
        later = self.starts(self.mended + RECOVERY, time.time())
        return {
            "load a core": round(os.getloadavg()[0] / (os.cpu_count() or 1), 1),
            "lasted": round(self.mended - self.injected, 1),
            "probes": len(self.probes),
            "accepted during": sum(probe.status == 200 for probe in during),
            "refused during": sum(probe.status == 503 for probe in during),
            "slowest answer": round(max((p.seconds for p in self.probes), default=0.0), 2),
            "slowest start during": round(starts[-1], 2) if starts else None,
            "p50 start afterwards": round(statistics.median(later), 3) if later else None,
            "recovery": round(self.recovery, 2),
            "attempts": max(self.attempts(), default=0),
        }


# --- what is promised ---------------------------------------------------------------------------

Criterion = Callable[[Seen], list[str]]


def answers_within(seconds: float) -> Criterion:
    """No probe waits longer for its answer, whatever it is."""

    def judge(seen: Seen) -> list[str]:
        late = [probe for probe in seen.probes if probe.seconds > seconds]
        return [f"{len(late)} answers took longer than {seconds} s: {late[0]}"] if late else []

    return judge


def starts_within(seconds: float) -> Criterion:
    """What is accepted during the fault is started within so many seconds."""

    def judge(seen: Seen) -> list[str]:
        slow = [s for s in seen.starts(seen.injected, seen.mended) if s > seconds]
        return [f"{len(slow)} runs started after {slow[-1]:.1f} s"] if slow else []

    return judge


def keeps_accepting(seen: Seen) -> list[str]:
    """Nothing is refused while the fault lasts."""
    refused = [probe for probe in seen.during() if probe.status not in {200, None}]
    return [f"{len(refused)} were refused: {refused[0]}"] if refused else []


def refuses_cleanly(seen: Seen) -> list[str]:
    """Whoever is refused is told 503 and when to come again."""
    wrong = [
        probe
        for probe in seen.probes
        if probe.status not in {200, None} and (probe.status != 503 or not probe.retry_after)
    ]
    return [f"{len(wrong)} unclean refusals: {wrong[0]}"] if wrong else []


def recovers(seen: Seen) -> list[str]:
    """A few seconds after its end everything is as if nothing had been."""
    if seen.recovery > RECOVERY:
        return [f"it took {seen.recovery:.1f} s to recover"]
    return [] if seen.after(RECOVERY) else ["nobody asked afterwards"]


def hints_are_back(seen: Seen) -> list[str]:
    """After that, runs start when they are rung for, as before, not when they are polled for (every second)."""
    before, starts = seen.starts(0, seen.injected), seen.starts(seen.mended + RECOVERY, time.time())
    if not starts:
        return ["nothing started afterwards"]
    usual, middle = statistics.median(before or [0.0]), statistics.median(starts)
    slow = middle > max(0.3, 2 * usual)
    return (
        [f"half of the runs still started after {middle:.2f} s, {usual:.2f} s before"]
        if slow
        else []
    )


def nobody_is_interrupted(seen: Seen) -> list[str]:
    """No run is begun a second time."""
    again = sum(attempt > 1 for attempt in seen.attempts())
    return [f"{again} runs were begun again"] if again else []


def an_outage_is_no_death(seen: Seen) -> list[str]:
    """No death is counted against a run, and none is begun again, whose process lives."""
    found = seen.lab.postgres.execute(
        "select max(attempt), max(deaths), max(shared_deaths) from a2a_tasks_run where created_at > to_timestamp(%s)",
        seen.lab.database,
        seen.injected - EARLIER,
    )
    return [] if found[0] <= (1, 0, 0) else [f"attempts, deaths, deaths beside others: {found[0]}"]


def neighbours_keep_pace(seen: Seen) -> list[str]:
    """A short task takes at most twice as long as before, or as LEAST seconds."""
    before, during = seen.took(0, seen.injected), seen.took(seen.injected, seen.mended)
    if not before or not during:
        return ["nobody was beside it"]
    usual, now = statistics.median(before), statistics.median(during)
    slow = now > 2 * max(usual, LEAST)
    return [f"half of the short tasks took {now:.2f} s, {usual:.2f} s before"] if slow else []


def memory_is_bounded(seen: Seen) -> list[str]:
    """No process of the host has had more than a gigabyte."""
    found = []
    for process in seen.lab.processes:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        most = next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
        found += [f"{process.name} has had {most} MB"] if most > 1024 else []
    return found


def agents_stop(seen: Seen) -> list[str]:
    """An agent does not go on for long after the lease of its run has ended, and the grace of another one (I7)."""
    pid, moment = seen.cut_off
    limit = moment + 2 * seen.lab.plan.lease + 3.0
    theirs = {
        (r["task"], r["attempt"])
        for r in seen.lab.ledger()
        if r.what == "began" and r["pid"] == pid and r.t <= moment
    }
    late = [
        r
        for r in seen.lab.ledger()
        if r.what == "tick" and (r["task"], r["attempt"]) in theirs and limit < r.t < seen.mended
    ]
    if not theirs:
        return ["it carried nothing"]
    return [f"an agent went on for {late[-1].t - moment:.1f} s without its lease"] if late else []


REDIS = (keeps_accepting, answers_within(ANSWER), starts_within(2.0), recovers, hints_are_back)
POSTGRES = (refuses_cleanly, answers_within(ANSWER), recovers, hints_are_back)
