"""`python -m bench`: measure this host against its peers, in one run, as ratios. See docs/benchmarks.md."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import uvloop

from bench import procs, report, wrk
from bench.fill import fill
from bench.plan import QUICK, Plan
from bench.postgres import Server
from bench.procs import say
from bench.report import Results
from bench.scenarios import PLAIN, TITLES, s3, s4
from bench.targets import CACHE, STARTERS, Setup, Target, lacks, running
from bench.wrk import Metrics

SCENARIOS = sorted(TITLES)
#: Scenarios in one group share their processes and databases; each group starts on fresh ones.
GROUPS = (("S1", "S2", "S4", "S5", "S6"), ("S7",), ("S3",))
#: One round only: a second would find the memory that the first has left behind.
ONCE = {"S7"}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--scenarios", default=",".join(SCENARIOS), help="separated by commas (default: all)"
    )
    parser.add_argument(
        "--targets", help=f"separated by commas, of: {', '.join(STARTERS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, help=f"default {Plan.rounds}")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round of smaller sizes: does it work at all?",
    )
    parser.add_argument(
        "--server", choices=["uvicorn", "daphne"], default="uvicorn", help="of our host"
    )
    parser.add_argument("--json", type=Path, help="also write the JSON here")
    args = parser.parse_args(argv)
    args.scenarios = _chosen(parser, args.scenarios, SCENARIOS)
    args.named = args.targets is not None
    args.targets = _chosen(parser, args.targets or ",".join(STARTERS), list(STARTERS))
    return args


def _chosen(parser: argparse.ArgumentParser, text: str, known: list[str]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return [name for name in known if name in names]


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

    def __init__(self, plan: Plan, setup: Setup, results: Results) -> None:
        self.plan, self.setup, self.results = plan, setup, results

    async def group(self, scenarios: list[str], names: list[str]) -> None:
        """Start the targets, measure the scenarios, stop the targets."""
        with running(names, self.setup) as targets:
            for target in targets:
                await target.ready()
            for scenario in scenarios:
                await self.scenario(scenario, targets)
                print(report.scenario_table(self.results, scenario), flush=True)

    async def scenario(self, name: str, targets: list[Target]) -> None:
        """All rounds of one scenario, the targets taking turns."""
        if name == "S3":
            for size in self.plan.sizes:
                for target in targets:
                    fill(target, size)
                await self.rounds(name, targets, size)
        elif name == "S4":
            for count in self.plan.chunks:
                await self.rounds(name, targets, count)
        else:
            await self.rounds(name, targets, None)

    async def rounds(self, name: str, targets: list[Target], size: int | None) -> None:
        """Interleaved rounds: each starts with another target. A target that is slow at a size is not asked twice."""
        slow: set[str] = set()
        rounds = 1 if name in ONCE else self.plan.rounds
        for turn in range(rounds):
            start = turn % len(targets)
            for target in targets[start:] + targets[:start]:
                if target.name not in slow:
                    seconds = await self.once(name, target, size, f"round {turn + 1} of {rounds}")
                    if name == "S4" and seconds > self.plan.repeat_below_seconds:
                        slow.add(target.name)

    async def once(self, name: str, target: Target, size: int | None, which: str) -> float:
        """One target, one round: keep the figures, or why there are none. Returns the seconds it took."""
        say(f"{name} {'' if size is None else f'N={size} '}{which}: {target.name}")
        t0 = time.monotonic()
        try:
            self.results.add(name, target.name, await self.measure(name, target, size))
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            say(f"FAILED: {error!r}")
            self.results.failures.append(f"{name}, {target.name}, {which}: {str(error)[:200]!r}")
            self.results.add(name, target.name, {})
        return time.monotonic() - t0

    def measure(self, name: str, target: Target, size: int | None) -> Coroutine[Any, Any, Metrics]:
        """The scenario's coroutine."""
        if size is None:
            return PLAIN[name](target, self.plan)
        return (s3 if name == "S3" else s4)(target, self.plan, size)


def machine(server: Server, args: argparse.Namespace) -> str:
    """One paragraph about the conditions."""
    host = f"{os.cpu_count()} cores, Python {platform.python_version()}, our host on {args.server}"
    quick = "; QUICK: these figures only show that it works" if args.quick else ""
    return f"{time.strftime('%Y-%m-%d %H:%M')}, {host}, {server.describe()}{quick}"


def write(results: Results, about: str, json_path: Path | None) -> None:
    """Keep everything measured so far in `var/bench/`."""
    tables = [report.scenario_table(results, name) for name in SCENARIOS if name in results.runs]
    failures = "".join(f"- failed: {line}\n" for line in results.failures)
    text = "\n".join([f"{about}\n", report.required_table(results), *tables, failures])
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
    bench = Bench(plan, Setup(server, args.server), results)
    for group in GROUPS:
        if chosen := [name for name in group if name in args.scenarios]:
            await bench.group(chosen, args.targets)
            write(results, about, args.json)
    print(report.required_table(results))
    return results


def main() -> int:
    """Measure; 1 when a round failed."""
    args = parse()
    if not procs.PROC.joinpath("self/stat").exists():
        raise SystemExit("bench reads CPU and memory from /proc and so needs Linux")
    if {"S1", "S2"} & set(args.scenarios):
        wrk.require()
    args.targets = available(args.targets, args.named)
    plan = QUICK if args.quick else Plan()
    if args.rounds:
        plan = dataclasses.replace(plan, rounds=args.rounds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that children are stopped
    CACHE.mkdir(parents=True, exist_ok=True)
    server = Server()
    try:
        results = uvloop.run(measure(args, plan, server))
    except procs.Failed as error:
        raise SystemExit(str(error)) from None
    finally:
        server.close()
    say(f"report: {CACHE / 'report.md'}")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
