"""`var/reports/webhooks.md`: the figures of the last campaign of each part, from what is kept under `var/faults`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.faultlab.campaign import KEPT
from lab.faultlab.report import REPORTS, describe_machine, save, table

__all__ = ["PAGE", "PARTS", "write"]

PAGE = REPORTS / "webhooks.md"
#: In the order of the page, with what a part does.
PARTS = {
    "behaviours": "36 kinds of receivers at once, each sent 50 events",
    "volume": "as many events as go in, to receivers of which a share is bad, and to good ones alone",
    "isolation": "the same at a pace that leaves time",
    "kills": "a pusher killed, asked to end or frozen at a named point of the code",
    "throughput": "a full table emptied, beside a bare client",
}
INTRODUCTION = """\
# Webhooks report

What the farm (`lab/farm`) measured in its last campaign: a whole host with PostgreSQL, Redis, a web process, a worker and pushers, and receivers that write down what
comes. Written by `python -m lab.farm report` from the results of the parts; `make lab-webhooks` runs them all. Times of the schedule are shortened (`A2A_WEBHOOK_TIME_SCALE`: the three days are a minute), and a delivery may
take 3 seconds instead of 15, in the kills 1. A part passes if an offline checker finds that every event is accounted for, in order, signed, on the schedule, sent again only where a process was hurt, nothing went
where it may not, and no secret is in a log, a table or a page of the admin. It judges no times: other work may have shared the machine, so compare lines of one part with each other, and best by the time of a processor.
"""
Part = Mapping[str, Any]


def write() -> Path:
    """Write the page anew; parts that were never run are left out. Returns its path."""
    parts = {name: json.loads(path.read_text()) for name in PARTS if (path := _path(name)).exists()}
    sections = [INTRODUCTION, describe_machine(), _summary(parts)]
    sections += [_section(name, part) for name, part in parts.items()]
    return save(PAGE, sections)


def _path(name: str) -> Path:
    return KEPT / f"webhook-{name}.json"


def _summary(parts: Mapping[str, Part]) -> str:
    heads = ("part", "what", "episodes", "violated", "taken", "when")
    rows = [
        (
            f"[{name}](#{name})",
            PARTS[name],
            len(part["episodes"]),
            sum(bool(episode["violations"]) for episode in part["episodes"]),
            f"{part['seconds'] // 60} min {part['seconds'] % 60:02} s",
            part["when"],
        )
        for name, part in parts.items()
    ]
    return "## All parts\n\n" + table(heads, rows)


def _section(name: str, part: Part) -> str:
    told = [f"## {name}\n", f"`{part['command']}`, {part['when']} UTC.\n", DETAILS[name](part)]
    for episode in part["episodes"]:
        if episode["violations"]:
            told.append(f"- **{episode['name']}, seed {episode['seed']}**")
            told += [f"  - {v['invariant']}: {v['text']}"[:300] for v in episode["violations"][:5]]
    return "\n".join([*told, ""])


def _kinds(part: Part) -> str:
    (episode,) = part["episodes"][-1:]
    heads = ("", "receiver", "notifications", "ended", "attempts", "requests that came", "answers")
    rows = [
        (number, kind["what"], kind["notifications"], _counted(kind["ended"]), kind["attempts"], kind["came"], _counted(kind["answers"]))
        for number, kind in episode["figures"].get("kinds", {}).items()
    ]  # fmt: skip
    refused = f"{episode['figures'].get('refused', 0)} URLs that may not be called were refused when they were registered.\n"
    return table(heads, rows) + "\n" + refused


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _figures(part: Part) -> str:
    """A line an episode."""
    episodes = part["episodes"]
    names = list(dict.fromkeys(name for episode in episodes for name in episode["figures"]))
    rows = [
        (episode["name"], *(episode["figures"].get(name, "") for name in names))
        for episode in episodes
    ]
    return table(("", *names), rows)


def _points(part: Part) -> str:
    rows: defaultdict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for episode in part["episodes"]:
        point, _, action = episode["name"].rpartition(" ")
        rows[point][action].append(episode)
    actions = ("kill", "term", "stop")
    cells = [
        (f"`{point}`", *(_passed(found.get(a, [])) for a in actions))
        for point, found in rows.items()
    ]
    heads = ("point", "SIGKILL", "SIGTERM", "SIGSTOP for two leases")
    return "Episodes passed, of those run.\n\n" + table(heads, cells)


def _passed(episodes: Sequence[Any]) -> str:
    return (
        f"{sum(not episode['violations'] for episode in episodes)}/{len(episodes)}"
        if episodes
        else ""
    )


DETAILS: dict[str, Callable[[Part], str]] = {
    "behaviours": _kinds,
    "volume": _figures,
    "isolation": _figures,
    "kills": _points,
    "throughput": _figures,
}
