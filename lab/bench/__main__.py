"""`python -m lab.bench`: measure this host against its peers, in one run, as ratios. See lab/bench/README.md."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from lab.bench import dashboard, h2load, lists, procs, report, walks, wrk
from lab.bench.fill import fill
from lab.bench.plan import QUICK, Plan
from lab.bench.postgres import Server
from lab.bench.procs import say
from lab.bench.report import Results
from lab.bench.scenarios import CONSOLE, PLAIN, TITLES, s3, s4
from lab.bench.targets import (
    CACHE,
    TARGETS,
    BeforeCelery,
    BeforeLocal,
    Target,
    lacks,
    server_of_run,
)
from lab.bench.wrk import Metrics

SCENARIOS = sorted(TITLES)
#: Scenarios in one group share the databases; each group starts on fresh ones.
GROUPS = (("S1", "S2", "S4", "S5", "S6"), ("S7",), ("S3",), ("W1", "W2"), ("G1",))
#: One round only: it hardly varies, and takes longest.
ONCE = {"S7", "W1", "W2"}
#: Scenarios of one target alone, which is asked nothing else.
OWN = {"W1": "ours-worker", "W2": "ours-worker", "G1": "ours-grpc"}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench", description=__doc__)
    parser.add_argument(
        "--scenarios", default=",".join(SCENARIOS), help="separated by commas (default: all)"
    )
    parser.add_argument(
        "--targets", help=f"separated by commas, of: {', '.join(TARGETS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, help=f"default {Plan.rounds}")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round of smaller sizes, to see that everything works",
    )
    parser.add_argument(
        "--before",
        type=Path,
        help="another checkout of this host, measured as before-local and before-celery",
    )
    parser.add_argument("--json", type=Path, help="also write the JSON here")
    args = parser.parse_args(argv)
    args.scenarios = _choose(parser, args.scenarios, SCENARIOS)
    args.named = args.targets is not None
    if args.before:
        if not (args.before / "manage.py").is_file():
            parser.error(f"--before: there is no manage.py in {args.before}")
        BeforeLocal.root = BeforeCelery.root = args.before.resolve()
    args.targets = _choose(parser, args.targets or ",".join(TARGETS), list(TARGETS))
    return args


def _choose(parser: argparse.ArgumentParser, text: str, existing: list[str]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in existing]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(existing)}")
    return [name for name in existing if name in names]


def takes_part(scenarios: Sequence[str], target: str) -> bool:
    """Return whether this target takes part in a group of scenarios."""
    own = {OWN[name] for name in scenarios if name in OWN}
    return target in own if own else target not in OWN.values()


def available(names: list[str], named: bool) -> list[str]:
    """The targets this machine can run. One asked for by name must be among them."""
    for name in names:
        if missing := lacks(name):
            if named:
                raise SystemExit(f"{name} needs {missing}")
            say(f"LEFT OUT: {name} (needs {missing})")
    return [name for name in names if not lacks(name)]


class Bench:
    """One run: its plan, its targets and what came out so far."""

    def __init__(self, plan: Plan, targets: list[Target], results: Results) -> None:
        self.plan, self.targets, self.results = plan, targets, results

    async def group(self, scenarios: list[str]) -> None:
        """Measure the scenarios on stores that are empty at first."""
        targets = [it for it in self.targets if takes_part(scenarios, it.name)]
        for target in targets:
            say(f"preparing {target.name}")
            target.prepare()
        for scenario in scenarios if targets else []:
            for size in self.plan.sizes if scenario == "S3" else (None,):
                if size is not None:
                    await self.fill(targets, size)
                await self.rounds(targets, scenario, size)
            print(report.scenario_table(self.results, scenario), flush=True)

    async def fill(self, targets: list[Target], size: int) -> None:
        """Bring every store to this size. The first task, which the others copy, is made by the target."""
        for target in targets:
            async with target.up(warm=False):
                pass
            fill(target, size)

    async def rounds(self, targets: list[Target], name: str, size: int | None) -> None:
        """Interleaved rounds: each starts with another target."""
        rounds = 1 if name in ONCE else self.plan.rounds
        for turn in range(rounds):
            start = turn % len(targets)
            for target in targets[start:] + targets[:start]:
                at = "" if size is None else f" N={size}"
                which = f"{name}{at}, {target.name}, round {turn + 1} of {rounds}"
                say(which)
                await self.once(name, target, size, which)

    async def once(self, name: str, target: Target, size: int | None, which: str) -> None:
        """Run one round of one target: keep its figures, or the reason why there are none."""
        figures: Metrics = {}
        try:
            async with target.up(warm=name != "S3"):  # where each task counts
                figures = await self.measure(name, target, size)
        except procs.Failed:
            raise
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            say(f"FAILED: {error!r}")
            self.results.failures.append(f"{which}: {str(error)[:200]!r}")
        self.results.add(name, target.name, figures)

    async def measure(self, name: str, target: Target, size: int | None) -> Metrics:
        """Run the scenario."""
        if name == "S4":
            return await self.streams(target)
        return await (
            PLAIN[name](target, self.plan) if size is None else s3(target, self.plan, size)
        )

    async def streams(self, target: Target) -> Metrics:
        """Run all sizes of S4. A size that took the target long is not repeated."""
        out: Metrics = {}
        for count in self.plan.chunks:
            figure, before = (
                f"total s N={count}",
                self.results.runs.get("S4", {}).get(target.name, []),
            )
            slowest = max((one.get(figure) or 0 for one in before), default=0)
            if slowest < self.plan.repeat_below_seconds:
                out |= await s4(target, self.plan, count)
        return out


def machine(server: Server, args: argparse.Namespace) -> str:
    """One paragraph about the conditions."""
    host = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    quick = "; QUICK: these figures only show that it works" if args.quick else ""
    return f"{time.strftime('%Y-%m-%d %H:%M')}, {host}, {server.describe()}{quick}"


def write(results: Results, about: str, json_path: Path | None) -> None:
    """Keep everything measured so far in `var/bench/`."""
    tables = [report.scenario_table(results, name) for name in SCENARIOS if name in results.runs]
    failures = "".join(f"- failed: {line}\n" for line in results.failures)
    text = "\n".join([f"{about}\n", report.requirements_table(results), *tables, failures])
    (CACHE / "report.md").write_text(text)
    medians = {name: results.medians(name) for name in results.runs}
    document = {
        "about": about,
        "medians": medians,
        "runs": results.runs,
        "failures": results.failures,
    }
    for path in filter(None, [CACHE / "report.json", json_path]):
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False))


async def measure(args: argparse.Namespace, plan: Plan, server: Server) -> Results:
    """Run every group that holds a chosen scenario."""
    results, about = Results({}, []), machine(server, args)
    bench = Bench(plan, [TARGETS[name](server) for name in args.targets], results)
    for group in GROUPS:
        if chosen := [name for name in group if name in args.scenarios]:
            await bench.group(chosen)
            write(results, about, args.json)
    print(report.requirements_table(results))
    return results


def console(args: argparse.Namespace, plan: Plan, server: Server, results: Results) -> None:
    """Measure the operators' pages on one database. Not in an event loop: Django is called directly."""
    chosen = [name for name in CONSOLE if name in args.scenarios]
    if not chosen:
        return
    url = lists.fill_database(server, plan.tasks)
    if "A1" in chosen:
        results.add("A1", "console", lists.ask(plan.tasks))
    if "A2" in chosen:
        dashboard.spread(url, plan.tasks)
        results.add("A2", "console", dashboard.ask())
    if "A3" in chosen:
        results.add("A3", "console", walks.ask(url, plan.tasks))
    for name in chosen:
        print(report.scenario_table(results, name), flush=True)
    write(results, machine(server, args), args.json)


def main() -> int:
    """Measure; 1 when a round failed."""
    args = parse()
    if not procs.PROC.joinpath("self/stat").exists():
        raise SystemExit("bench reads CPU and memory from /proc and so needs Linux")
    if {"S1", "S2"} & set(args.scenarios):
        wrk.require()
    if "G1" in args.scenarios:
        wrk.require()
        h2load.require()
    args.targets = available(args.targets, args.named)
    plan = QUICK if args.quick else Plan()
    if args.rounds:
        plan = dataclasses.replace(plan, rounds=args.rounds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that children are stopped
    with server_of_run() as server:
        results = uvloop.run(measure(args, plan, server))
        console(args, plan, server, results)
    say(f"report: {CACHE / 'report.md'}")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
