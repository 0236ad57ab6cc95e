"""`python -m lab.framework_kills kills`: workers of agents of frameworks are killed. Results are kept under `var/faults`."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from lab.faultlab.campaign import KEPT, Job, campaign, conclude
from lab.faultlab.lab import Episode, Plan
from lab.framework_kills import report
from lab.framework_kills.broken import BUILDS, play
from lab.framework_kills.cases import BACKENDS, FRAMEWORKS, SQLITE, STACK, Case, make_case
from lab.framework_kills.checker import check
from lab.framework_kills.evidence import Evidence
from lab.framework_kills.lab import EmbeddedKillsLab, KillsLab, plan, run

Options = argparse.Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a part; 1 if anything was violated."""
    options = parser().parse_args(arguments)
    return conclude(PARTS[options.part](options))


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    known = argparse.ArgumentParser(prog="python -m lab.framework_kills", description=__doc__)
    known.add_argument("part", choices=[*PARTS])
    known.add_argument("file", nargs="?", type=Path, help="of `check`: the evidence of an episode")
    known.add_argument("--build", default="", help="broken: only builds with this in their names")
    known.add_argument("--kills", type=int, default=300, help="shared by the frameworks")
    known.add_argument("--first-seed", type=int, default=1)
    known.add_argument("--only", default="", choices=["", *FRAMEWORKS], help="one framework")
    known.add_argument("--backend", default=STACK, choices=BACKENDS)
    known.add_argument("--labs", type=int, default=2, help="hosts at the same time")
    return known


def kills(options: Options) -> list[Episode]:
    """Conversations with that many kills, of each framework as many."""
    names = [options.only] if options.only else FRAMEWORKS
    cases = [
        case
        for name in names
        for case in make_cases(
            name, options.backend, options.first_seed, options.kills // len(names)
        )
    ]
    jobs = [Job(run, (case,), plan(case.framework, case.backend)) for case in cases]
    kind = EmbeddedKillsLab if options.backend == SQLITE else KillsLab
    part = report.name_part(options.backend)
    if not options.only:  # a whole campaign replaces the one before
        (KEPT / f"{part}.json").unlink(missing_ok=True)
    return campaign(
        part,
        jobs,
        labs=options.labs,
        plan=jobs[0].plan or plan(names[0], options.backend),
        kind=kind,
    )


def cancels(options: Options) -> list[Episode]:
    """Print how long requests to the model go on when their task is cancelled, at default settings."""
    for name in [options.only] if options.only else FRAMEWORKS:
        with KillsLab(Plan(webs=1, workers=3, environ={"KILLS_FRAMEWORK": name})) as lab:
            lab.all_ready()
            took = asyncio.run(lab.cancel(make_case(name, options.first_seed, STACK), 10))
        middle, most = statistics.median(took) * 1000, max(took) * 1000
        print(f"{name}: median {middle:.0f} ms, most {most:.0f} ms", file=sys.stderr)
    return []


def broken_builds(options: Options) -> list[Episode]:
    """Each build with a mistake, one after the other."""
    begun, episodes = time.monotonic(), []
    for name in [name for name in BUILDS if options.build in name]:
        episodes.append(episode := play(name, options.first_seed))
        caught = episode.figures["caught by"] or "NOTHING"
        print(
            f"{name}: caught by {caught}, seed {episode.seed}, {episode.seconds:.0f} s",
            file=sys.stderr,
        )
        told = {
            "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            "command": " ".join(["python -m lab.framework_kills", *sys.argv[1:]]),
            "seconds": round(time.monotonic() - begun),
            "episodes": [asdict(one) for one in episodes],
        }
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{report.BROKEN}.json").write_text(json.dumps(told, default=str))
    return episodes


def make_cases(framework: str, backend: str, first: int, kills_wanted: int) -> list[Case]:
    """Cases, from that seed on, that have at least so many kills together."""
    cases: list[Case] = []
    while sum(case.kills for case in cases) < kills_wanted:
        cases.append(make_case(framework, first + len(cases), backend))
    return cases


def judge_again(options: Options) -> list[Episode]:
    """Print what the checker says of evidence that was kept."""
    evidence = msgspec.json.decode(options.file.read_bytes(), type=Evidence)
    print("\n".join(map(str, check(evidence))) or "nothing is violated")
    return []


def write_report(_: Options) -> list[Episode]:
    """The page, from what is kept."""
    print(f"written: {report.write()}", file=sys.stderr)
    return []


PARTS: dict[str, Callable[[Options], list[Episode]]] = {
    "kills": kills,
    "cancels": cancels,
    "broken": broken_builds,
    "check": judge_again,
    "report": write_report,
}

if __name__ == "__main__":
    sys.exit(main())
