"""Campaigns: many episodes on several labs at once, with a progress bar; results are kept under `var/faults`."""

from __future__ import annotations

import json
import multiprocessing
import queue
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from typing import Any

from lab.faultlab.checker import Violation
from lab.faultlab.lab import Episode, Lab, Plan
from tests import ROOT
from tests.support.end_with_parent import end_with_parent

__all__ = ["KEPT", "Job", "campaign", "conclude"]

#: Where results, and all there is about failed episodes, are kept.
KEPT = ROOT / "var" / "faults"


@dataclass(frozen=True)
class Job:
    """One episode to come: a function of this package's modules, called with a lab and these."""

    run: Callable[..., Episode]
    arguments: tuple[Any, ...]
    #: Its lab, if that is not the campaign's.
    plan: Plan | None = None

    def __str__(self) -> str:
        return " ".join(map(str, self.arguments))


def campaign(
    part: str, jobs: Sequence[Job], *, labs: int, plan: Plan, kind: type[Lab] = Lab
) -> list[Episode]:
    """Carry out all jobs on so many labs; every failed one is told and kept. Returns the episodes."""
    begun, earlier = time.monotonic(), _earlier(part)
    spawn = multiprocessing.get_context("spawn")
    todo: Queue[Job | None] = spawn.Queue()  # fed by a thread: it holds more than a pipe does
    done: Queue[Episode] = spawn.Queue()
    for job in [*jobs, *[None] * labs]:
        todo.put(job)
    workers = [
        spawn.Process(target=_work, args=(part, plan, kind, todo, done))
        for _ in range(min(labs, len(jobs)))
    ]
    for process in workers:
        process.start()
    episodes: list[Episode] = []
    for _ in jobs:
        episodes.append(_next(done, workers))
        _show(part, episodes, len(jobs), begun)
        _keep(part, episodes, plan, labs, time.monotonic() - begun, earlier)
    for process in workers:
        process.join()
    return episodes


def _next(done: Queue[Episode], workers: Sequence[BaseProcess]) -> Episode:
    """The next episode to end. Raises RuntimeError when nobody is left to end one."""
    while True:
        try:
            return done.get(timeout=5)
        except queue.Empty:
            if not any(process.is_alive() for process in workers):
                raise RuntimeError("all labs have died; see above") from None


def _work(
    part: str, plan: Plan, kind: type[Lab], todo: Queue[Job | None], done: Queue[Episode]
) -> None:
    """One lab after the other: an episode that failed may have left its lab unfit, so it gets a new one."""
    end_with_parent()
    job = todo.get()
    while job is not None:
        try:
            wanted = job.plan or plan
            with kind(wanted) as lab:
                while job is not None and wanted == (job.plan or plan):
                    episode = job.run(lab, *job.arguments)
                    if episode.violations:
                        lab.keep(KEPT / part / f"{job}-{time.time():.0f}".replace(" ", "-"))
                    done.put(episode)
                    job = todo.get()
                    if episode.violations:
                        break
        except Exception:  # noqa: BLE001 - the lab itself broke: that is a failure, too
            done.put(_broken(str(job), traceback.format_exc()))
            job = todo.get()


def _broken(name: str, trace: str) -> Episode:
    return Episode(
        name=name,
        seed=0,
        seconds=0,
        tasks=0,
        violations=[Violation("lab", trace[-3000:], [])],
        recoveries=[],
    )


def _show(part: str, episodes: Sequence[Episode], of: int, begun: float) -> None:
    newest = episodes[-1]
    failed = sum(bool(episode.violations) for episode in episodes)
    if newest.violations:
        print(f"\r\033[K{newest.name} seed {newest.seed}: VIOLATED", file=sys.stderr)
        for violation in newest.violations[:5]:
            print(f"  {violation.invariant}: {violation.text}"[:2000], file=sys.stderr)
    spent = time.monotonic() - begun
    left = spent / len(episodes) * (of - len(episodes))
    bar = "#" * (30 * len(episodes) // of)
    line = (
        f"{part} [{bar:30}] {len(episodes)}/{of}, {failed} failed, {spent:.0f} s, {left:.0f} s left"
    )
    end = "\n" if len(episodes) == of else ""
    print(f"\r\033[K{line}", end=end, file=sys.stderr, flush=True)


def _keep(
    part: str,
    episodes: Sequence[Episode],
    plan: Plan,
    labs: int,
    seconds: float,
    earlier: Mapping[str, Any],
) -> None:
    """What is kept of an episode stays until it is played again."""
    played = {(episode.name, episode.seed) for episode in episodes}
    others = [e for e in earlier["episodes"] if (e["name"], e["seed"]) not in played]
    told = {
        "part": part,
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "command": " ".join([f"python -m {_program()}", *sys.argv[1:]]),
        "labs": labs,
        "lease": plan.lease,
        "seconds": earlier["seconds"] + round(seconds),
        "episodes": [*others, *(asdict(episode) for episode in episodes)],
    }
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{part}.json").write_text(json.dumps(told, default=str))


def _earlier(part: str) -> dict[str, Any]:
    """What was kept of a part before."""
    path = KEPT / f"{part}.json"
    found: dict[str, Any] = {"seconds": 0, "episodes": []}
    return json.loads(path.read_text()) if path.exists() else found


def _program() -> str:
    """The package that was started."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return str(spec.parent) if spec else "lab.faultlab"


def conclude(episodes: Sequence[Episode]) -> int:
    """Print the figures of a part; 1 if anything was violated."""
    print(json.dumps(_summary(episodes), indent=1))
    return int(any(episode.violations for episode in episodes))


def _summary(episodes: Sequence[Episode]) -> dict[str, Any]:
    recoveries = sorted(seconds for episode in episodes for seconds in episode.recoveries)
    return {
        "episodes": len(episodes),
        "tasks": sum(episode.tasks for episode in episodes),
        "failed": sum(bool(episode.violations) for episode in episodes),
        "recoveries": len(recoveries),
        "p50": round(statistics.median(recoveries), 2) if recoveries else None,
        "max": round(recoveries[-1], 2) if recoveries else None,
    }
