"""`var/reports/reliability.md`: the figures of the last campaign of each part, from what is kept under `var/faults`."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.faultlab.campaign import KEPT
from tests import ROOT

__all__ = ["PAGE", "REPORTS", "describe_machine", "save", "table", "write"]

#: Written by campaigns, and not in the repository.
REPORTS = ROOT / "var" / "reports"
PAGE = REPORTS / "reliability.md"
#: What there is to say of this campaign, by whoever ran it.
NOTES = KEPT / "notes.md"
#: In the order of the page, with what a part does.
PARTS = {
    "points": "a process killed, asked to end or frozen at a named point of the code",
    "zombies": "a worker frozen at a random moment, for longer than its lease",
    "infrastructure": "PostgreSQL, Redis, the network or the machine misbehave",
    "streams": "clients tear their streams and resume them on any process",
    "trees": "workers killed whose agents have called each other",
    "trees-sqlite": "the same with the only process of an embedded host",
    "rolling": "all processes replaced one by one, under load",
    "webhooks": "senders of webhooks of 1 to 10 MB killed and frozen while PostgreSQL or Redis restarts",
    "volume": "thousands of short tasks, and one fault after the other",
    "broken": "builds broken on purpose, which the checker has to catch",
}
INTRODUCTION = """\
# Reliability report

What the fault lab (`lab/faultlab`, described in [the laboratory](../../lab/README.md#the-fault-lab)) measured in its last campaign. The page is written by
`python -m lab.faultlab report` from the results of the parts; `make lab-faults` runs them all. Every episode has real processes (two web
processes, three workers, beat), a PostgreSQL and a Redis of its own, clients that do not give up, and an offline checker; it passes if not one
invariant is violated. Hosts run at default settings, the limit of attempts included, but for the lease that is told. A task that fails is a violation,
unless its agent is at fault or must not act twice. Episodes run on several hosts at once on one machine, so times include waiting for a processor.
"""

Part = Mapping[str, Any]
Rows = Iterable[Sequence[object]]


def write() -> Path:
    """Write the page anew; parts that were never run are left out. Returns its path."""
    parts = [json.loads((KEPT / f"{name}.json").read_text()) for name in PARTS if _kept(name)]
    notes = [NOTES.read_text()] if NOTES.exists() else []
    details = [_section(part) for part in parts]
    sections = [INTRODUCTION, describe_machine(), _summary(parts), *notes, *details]
    return save(PAGE, sections)


def save(page: Path, sections: Iterable[str]) -> Path:
    """Write a page of these sections, in a folder that need not be there. Returns its path."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(sections), encoding="utf-8")
    return page


def _kept(name: str) -> bool:
    return (KEPT / f"{name}.json").exists()


def describe_machine() -> str:
    """Return a line about this machine."""
    cores = os.cpu_count()
    return f"Machine: {cores} cores, {platform.system()}, Python {platform.python_version()}.\n"


def _summary(parts: Sequence[Part]) -> str:
    heads = ("part", "what", "episodes", "tasks", "violated", "taken", "hosts", "lease", "when")
    rows = [
        (
            f"[{part['part']}](#{part['part']})",
            PARTS[part["part"]],
            len(part["episodes"]),
            sum(episode["tasks"] for episode in part["episodes"]),
            len(_violated(part)),
            _minutes(part["seconds"]),
            part["labs"],
            f"{part['lease']:g} s",
            part["when"],
        )
        for part in parts
    ]
    total = f"**{sum(r[2] for r in rows)} episodes, {sum(r[3] for r in rows)} tasks, {sum(r[4] for r in rows)} violations.**\n"
    left = [name for name in PARTS if not _kept(name)]
    unseen = f"Not run: {', '.join(left)}.\n" if left else ""
    return "\n".join(["## All parts\n", table(heads, rows), total, unseen])


def _violated(part: Part) -> list[Any]:
    return [episode for episode in part["episodes"] if episode["violations"]]


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def table(heads: Sequence[str], rows: Rows) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join([*lines, ""])


def _section(part: Part) -> str:
    told = [f"## {part['part']}\n", f"`{part['command']}`, {part['when']} UTC.\n"]
    recovered = sorted(s for episode in part["episodes"] for s in episode["recoveries"])
    if recovered:
        told.append(_recovery(recovered))
    details = DETAILS.get(part["part"])
    if details:
        told.append(details(part))
    told += [_failure(episode) for episode in _violated(part)]
    return "\n".join(told)


def _recovery(recovered: Sequence[float]) -> str:
    at = [statistics.median(recovered), _percentile(recovered, 95), recovered[-1]]
    return (
        f"{len(recovered)} interrupted attempts were going on again after "
        f"p50 {at[0]:.1f} s, p95 {at[1]:.1f} s, max {at[2]:.1f} s.\n"
    )


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _failure(episode: Mapping[str, Any]) -> str:
    lines = [f"- **{episode['name']}, seed {episode['seed']}**"]
    lines += [f"  - {v['invariant']}: {v['text']}"[:400] for v in episode["violations"][:5]]
    return "\n".join([*lines, ""])


def _by_name(part: Part) -> dict[str, list[Any]]:
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for episode in part["episodes"]:
        found[episode["name"]].append(episode)
    return dict(found)


def _points(part: Part) -> str:
    rows = defaultdict(dict)  # type: ignore[var-annotated]
    for name, episodes in _by_name(part).items():
        point, _, action = name.rpartition(" ")
        rows[point][action] = _passed(episodes)
    actions = ("kill", "term", "stop")
    cells = [(f"`{point}`", *(found.get(a, "") for a in actions)) for point, found in rows.items()]
    return "Episodes passed, of those run; the longest recovery.\n\n" + table(
        ("point", "SIGKILL", "SIGTERM", "SIGSTOP for two leases"), cells
    )


def _passed(episodes: Sequence[Any]) -> str:
    good = sum(not episode["violations"] for episode in episodes)
    recovered = [s for episode in episodes for s in episode["recoveries"]]
    longest = f", {max(recovered):.1f} s" if recovered else ""
    return f"{good}/{len(episodes)}{longest}"


def _figures(part: Part) -> str:
    """By name: passed, tasks, and the worst of every figure that is a number."""
    names = sorted({k for e in part["episodes"] for k, v in e["figures"].items() if _number(v)})
    rows = [
        (
            name,
            _passed(episodes),
            sum(e["tasks"] for e in episodes),
            *(_worst(episodes, key) for key in names),
        )
        for name, episodes in _by_name(part).items()
    ]
    return table(("episode", "passed", "tasks", *(f"max {name}" for name in names)), rows)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _worst(episodes: Sequence[Any], key: str) -> str:
    known = [e["figures"][key] for e in episodes if _number(e["figures"].get(key))]
    return f"{max(known):.4g}" if known else ""


def _cuts(part: Part) -> str:
    cuts = sum(episode["figures"].get("cuts", 0) for episode in part["episodes"])
    readers = sum(episode["figures"].get("readers", 0) for episode in part["episodes"])
    return f"**{cuts} cuts** by {readers} readers: nothing missing, nothing twice, nothing out of order, unless told below.\n"


def _rolling(part: Part) -> str:
    """Sums and counts of all rolls, by server."""
    rows = [
        _rolls_of(name, [e["figures"] for e in found]) for name, found in _by_name(part).items()
    ]
    heads = (
        *(
            "",
            "restarts",
            "seconds each (median, max)",
            "requests",
            "error answers",
            "broken connections",
        ),
        *("streams", "ended by a restart", "torn", "longest silence of a stream (median, max)"),
    )
    return table(heads, rows)


def _rolls_of(name: str, figures: Sequence[Mapping[str, Any]]) -> Sequence[object]:
    rolls = [second for one in figures for second in one.get("rolls", ())]
    pauses = [second for one in figures for second in one.get("pauses", ())]
    return (
        name.removeprefix("rolling "),
        len(rolls),
        _middle_and_most(rolls),
        _sum(figures, "requests"),
        _counted(figures, "refused"),
        _counted(figures, "broken"),
        *(_sum(figures, key) for key in ("streams", "streams_ended_by_deploy", "streams_cut")),
        _middle_and_most(pauses),
    )


def _middle_and_most(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.1f} s, {max(seconds):.1f} s" if seconds else ""


def _sum(figures: Sequence[Mapping[str, Any]], key: str) -> int:
    return sum(one.get(key, 0) for one in figures)


def _counted(figures: Sequence[Mapping[str, Any]], key: str) -> str:
    total: Counter[str] = sum((Counter(one.get(key, {})) for one in figures), Counter())
    return ", ".join(f"{count} {name}" for name, count in sorted(total.items())) or "0"


def _builds(part: Part) -> str:
    heads = ("build", "scenario", "caught by", "seconds")
    rows = [
        (f"`{b['build']}`", b["scenario"], b["caught by"] or "passed", b["seconds"])
        for b in sorted(part["builds"], key=lambda b: (b["build"] == "sound", b["build"]))
    ]
    return table(heads, rows)


DETAILS = {
    "points": _points,
    "streams": _cuts,
    "infrastructure": _figures,
    "rolling": _rolling,
    "webhooks": _figures,
    "volume": _figures,
    "broken": _builds,
}
