"""`python -m lab.farm PART`: the campaign of webhooks. `make lab-webhooks` runs all of it; results are kept under `var/faults`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from lab.farm import parts, report, server
from lab.farm.lab import FarmLab, plan
from lab.farm.ways import WAYS
from lab.faultlab.campaign import Job, campaign, conclude
from lab.faultlab.lab import Episode

Options = argparse.Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a part; 1 if anything was violated."""
    options = parser().parse_args(arguments)
    if options.part == "serve":
        server.run(options.file)
        return 0
    return conclude(PARTS[options.part](options))


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    known = argparse.ArgumentParser(prog="python -m lab.farm", description=__doc__)
    known.add_argument("part", choices=[*PARTS, "serve"])
    known.add_argument("file", nargs="?", default="", help="of `serve`, which the lab starts")
    known.add_argument("--seeds", type=int, default=10, help="episodes of each kind")
    known.add_argument("--first-seed", type=int, default=1)
    known.add_argument("--labs", type=int, default=2, help="hosts at the same time")
    known.add_argument(
        "--only",
        default="",
        help="behaviours: numbers with commas; kills: a part of the point's name",
    )
    known.add_argument("--action", default="", help="kills: only this signal")
    known.add_argument("--events", type=int, default=0, help="instead of as many as are promised")
    known.add_argument("--rate", type=float, default=2.0, help="isolation: tasks a second")
    known.add_argument("--endpoints", type=int, default=300)
    known.add_argument("--scale", type=float, default=0.0002, help="factor of the schedule's times")
    return known


def behaviours(options: Options) -> list[Episode]:
    """All kinds of receivers at once: 50 events each."""
    numbers = [int(number) for number in options.only.split(",") if number] or sorted(WAYS)
    words = (options.events or 50) // 5
    jobs = [Job(parts.behaviours, (numbers, 5, words, options.first_seed))]
    return run("webhook-behaviours", jobs, options, pushers=2)


def volume(options: Options) -> list[Episode]:
    """As many as go in: a farm without bad receivers, and one with."""
    events = options.events or 50_000
    return _neighbours("webhook-volume", options, events, rate=0.0)


def isolation(options: Options) -> list[Episode]:
    """The same at a pace that leaves time, so that what is measured is what neighbours do to each other."""
    events = options.events or 6_000
    return _neighbours("webhook-isolation", options, events, rate=options.rate)


def _neighbours(part: str, options: Options, events: int, *, rate: float) -> list[Episode]:
    options.labs = 1  # one after the other, on the same lab: they are compared
    jobs = [
        Job(parts.neighbours, (name, bad, events, options.endpoints, rate, options.first_seed))
        for name, bad in (("all good", 0.0), ("30 % bad", 0.3))
    ]
    return run(part, jobs, options, pushers=2, quick=False)


def kills(options: Options) -> list[Episode]:
    """Each failpoint of delivery, each signal, each seed."""
    jobs = [
        Job(parts.kill, (point, action, seed))
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for point in parts.POINTS
        for action in parts.ACTIONS
        if options.only in point and options.action in action
    ]
    options.scale /= 4
    return run("webhook-kills", jobs, options, limit=1.0, pushers=2)


def throughput(options: Options) -> list[Episode]:
    """How fast a full table is emptied, beside a bare client."""
    jobs = [Job(parts.drain, (options.events or 20_000, 100, options.first_seed))]
    return run("webhook-throughput", jobs, options, quick=False)


def run(
    part: str, jobs: Sequence[Job], options: Options, *, limit: float = 3.0, **more: Any
) -> list[Episode]:
    """The campaign of a part; a delivery may take `limit` seconds."""
    wanted = plan(scale=options.scale, limit=limit, **more)
    return campaign(part, jobs, labs=options.labs, plan=wanted, kind=FarmLab)


def everything(options: Options) -> list[Episode]:
    """All parts, and the report."""
    episodes = [episode for name in report.PARTS for episode in PARTS[name](options)]
    write_report(options)
    return episodes


def write_report(_: Options) -> list[Episode]:
    """The page, from what is kept."""
    print(f"written: {report.write()}", file=sys.stderr)
    return []


PARTS: dict[str, Callable[[Options], list[Episode]]] = {
    "all": everything,
    "behaviours": behaviours,
    "volume": volume,
    "isolation": isolation,
    "kills": kills,
    "throughput": throughput,
    "report": write_report,
}

if __name__ == "__main__":
    sys.exit(main())
