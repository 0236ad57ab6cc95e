"""`python -m lab.faultlab PART`: the campaigns. `make lab-faults` runs them all; each part alone takes options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lab.farm import lab as farm
from lab.farm import parts as webhooks
from lab.faultlab import (
    broken,
    infrastructure,
    points,
    report,
    rolling,
    streams,
    trees,
    volume,
    zombies,
)
from lab.faultlab.campaign import Job, campaign, conclude
from lab.faultlab.lab import DEFAULT, QUICK, Episode, Plan

Options = argparse.Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a part; 1 if anything was violated."""
    options = parser().parse_args(arguments)
    return conclude(PARTS[options.part](options))


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    known = argparse.ArgumentParser(prog="python -m lab.faultlab", description=__doc__)
    known.add_argument("part", choices=sorted(PARTS))
    known.add_argument("--seeds", type=int, default=10, help="episodes of each kind")
    known.add_argument("--first-seed", type=int, default=1)
    known.add_argument("--labs", type=int, default=6, help="hosts that are hurt at the same time")
    known.add_argument("--quick", action="store_true", help="leases of 1.5 s instead of 6")
    known.add_argument(
        "--only",
        default="",
        help="only what has this in its name; for infrastructure and broken, a pattern",
    )
    known.add_argument("--action", default="", help="only this signal")
    return known


def plan(options: Options, **more: Any) -> Plan:
    """The labs asked for."""
    return Plan(environ=QUICK if options.quick else DEFAULT, **more)


def seeds(options: Options) -> range:
    """The seeds asked for."""
    return range(options.first_seed, options.first_seed + options.seeds)


def crash_points(options: Options) -> list[Episode]:
    """Each crash point, each signal, each seed."""
    jobs = [
        Job(points.run, (point, action, seed))
        for seed in seeds(options)
        for point in points.POINTS
        for action in points.ACTIONS
        if options.only in point and options.action in action
    ]
    return campaign("points", jobs, labs=options.labs, plan=plan(options))


def zombie_runs(options: Options) -> list[Episode]:
    """So many zombies."""
    jobs = [Job(zombies.run, (seed,)) for seed in seeds(options)]
    return campaign("zombies", jobs, labs=options.labs, plan=plan(options))


def stream_cuts(options: Options) -> list[Episode]:
    """So many episodes of torn streams."""
    jobs = [Job(streams.run, (seed,)) for seed in seeds(options)]
    return campaign("streams", jobs, labs=options.labs, plan=plan(options))


def infrastructure_faults(options: Options) -> list[Episode]:
    """Each fault of the servers, the network and the machine, each seed."""
    jobs = [
        Job(infrastructure.run, (fault.number, seed), plan(options, proxied=True, **fault.lab))
        for fault in sorted(infrastructure.FAULTS, key=lambda fault: sorted(fault.lab))
        for seed in seeds(options)
        if re.search(options.only, str(fault))
    ]
    return campaign("infrastructure", jobs, labs=options.labs, plan=plan(options))


def webhook_outages(options: Options) -> list[Episode]:
    """Senders of large webhooks are killed and frozen while PostgreSQL or Redis restarts."""
    jobs = [
        Job(webhooks.outage, (action, server, seed))
        for seed in seeds(options)
        for action in webhooks.DONE
        for server in ("postgres", "redis")
        if options.action in action and options.only in server
    ]
    wanted = farm.plan(scale=0.0002, limit=3.0, quick=False, pushers=2)
    wanted = replace(wanted, environ={**wanted.environ, "A2A_WEBHOOK_MAX_BYTES": "12000000"})
    return campaign("webhooks", jobs, labs=options.labs, plan=wanted, kind=farm.FarmLab)


def many_tasks(options: Options) -> list[Episode]:
    """Thousands of short tasks an episode, and faults all the time."""
    jobs = [Job(volume.run, (seed,)) for seed in seeds(options)]
    return campaign("volume", jobs, labs=options.labs, plan=plan(options))


def trees_of_tasks(options: Options) -> list[Episode]:
    """Workers of agents that call each other are killed; then the process of an embedded host."""
    jobs = [Job(trees.run, (trees.KILLS, seed)) for seed in seeds(options)]
    episodes: list[Episode] = []
    if options.only in "stack":
        host: Plan = trees.Grove(environ=plan(options).environ)
        episodes += campaign("trees", jobs, labs=options.labs, plan=host)
    if options.only in "sqlite":
        host = trees.Embedded(environ=plan(options).environ)
        kind = trees.EmbeddedLab
        episodes += campaign("trees-sqlite", jobs, labs=options.labs, plan=host, kind=kind)
    return episodes


def rolling_restarts(options: Options) -> list[Episode]:
    """Episodes of a few rolls each. Two hosts at a time: each has its share of requests."""
    jobs = [Job(rolling.run, (rolling.ROLLS, seed)) for seed in seeds(options)]
    return campaign("rolling", jobs, labs=min(options.labs, 2), plan=rolling.PLAN)


def broken_builds(options: Options) -> list[Episode]:
    """Every broken build, and the sound one."""
    return broken.run_all(labs=options.labs, only=options.only, seed=options.first_seed)


def everything(options: Options) -> list[Episode]:
    """All parts, each as often as is promised, and the report."""
    episodes = []
    for part, seeds_ in PROMISED.items():
        episodes += PARTS[part](argparse.Namespace(**{**vars(options), "seeds": seeds_}))
    write_report(options)
    return episodes


def write_report(_: Options) -> list[Episode]:
    """The page, from what is kept."""
    print(f"written: {report.write()}", file=sys.stderr)
    return []


#: How many seeds of each part a whole campaign has.
PROMISED = {
    "points": 10,
    "zombies": 300,
    "infrastructure": 5,
    "streams": 20,
    "trees": 10,
    "rolling": 10,
    "webhooks": 5,
    "volume": 15,
    "broken": 1,
}
PARTS: dict[str, Callable[[Options], list[Episode]]] = {
    "all": everything,
    "broken": broken_builds,
    "infrastructure": infrastructure_faults,
    "points": crash_points,
    "report": write_report,
    "rolling": rolling_restarts,
    "streams": stream_cuts,
    "trees": trees_of_tasks,
    "volume": many_tasks,
    "webhooks": webhook_outages,
    "zombies": zombie_runs,
}

if __name__ == "__main__":
    sys.exit(main())
