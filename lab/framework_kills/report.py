"""`var/reports/frameworks.md`: the figures of the last campaign on each backend, from what is kept under `var/faults`."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.faultlab.campaign import KEPT
from lab.faultlab.report import REPORTS, describe_machine, save, table
from lab.framework_kills.cases import BACKENDS, SQLITE, STACK

__all__ = ["BROKEN", "PAGE", "name_part", "write"]

PAGE = REPORTS / "frameworks.md"
#: The part with the broken builds.
BROKEN = "framework-broken"
HOSTS = {
    STACK: "PostgreSQL, Redis, a web process, three workers; the worker that carries the task is killed",
    SQLITE: "One process on SQLite, which is killed as a whole",
}
INTRODUCTION = """\
# Kill tests of framework agents

This page has the results of the last campaign of `lab/framework_kills`. It runs whole hosts with an agent of [pydantic-ai, LangGraph or the OpenAI Agents SDK](../../docs/frameworks.md), and kills their processes (SIGKILL) while the agent works. `python -m lab.framework_kills report` writes the page from the stored results.

Each seed is a conversation of three or four tasks. A scripted model server streams words, calls tools one after the other and side by side, and asks for approval of some. It stores each request with all its messages; the tools write to a ledger when they begin and when they are done. Each kill happens at a chosen moment: the request has come, the n-th word was sent, the answer was sent as a whole, a tool has begun or is done, or a [failpoint](../../lab/README.md#the-fault-lab) in the host is passed. Two clients follow each task and cut their streams again and again, one with `Last-Event-ID`, one without. The last task of each conversation is undisturbed: its request shows what the agent remembers.

A checker compares all these records afterwards. An episode passes if

- every task was completed, with each word of each answer once and in order, in GetTask and in each stream;
- no call whose answer or result was used, by the agent or in a stored step, was made again, neither of the model nor of a tool;
- each kill repeated at most one request to the model, or of the calls of tools only those that ran side by side;
- each request had the whole conversation, each message once: no answer without memory, no memory without answer;
- the question was asked once, a refused tool never ran, and each call of a tool was reported once;
- the usage of the task is the sum of the tokens of its answers, and of answers that were whole before a kill lost them. Only the model server counts requests that were cut off.

The columns "again" count repeated requests and calls: those that the kill cut off; those that were answered, but not stored yet when the process died; and those whose result was used, which must be 0.
"""
Part = Mapping[str, Any]


def name_part(backend: str) -> str:
    """Return the name under which episodes on a backend are kept."""
    return f"framework-kills-{backend}"


def write() -> Path:
    """Write the page anew; parts that were never run are left out. Returns its path."""
    sections = [INTRODUCTION, describe_machine()]
    sections += [
        _section(backend, part) for backend in BACKENDS if (part := _read(name_part(backend)))
    ]
    if broken := _read(BROKEN):
        sections.append(_builds(broken))
    return save(PAGE, sections)


def _read(part: str) -> Part | None:
    path = KEPT / f"{part}.json"
    found: Part | None = json.loads(path.read_text()) if path.exists() else None
    return found


def _about(part: Part) -> str:
    commits = sorted({episode["figures"].get("commit", "") for episode in part["episodes"]})
    taken = f"{part['seconds'] // 60} min {part['seconds'] % 60:02} s"
    return f"`{part['command']}`, {part['when']} UTC, commit {' '.join(commits)}, {taken}.\n"


def _section(backend: str, part: Part) -> str:
    frameworks: dict[str, list[Part]] = {}
    for episode in part["episodes"]:
        frameworks.setdefault(episode["name"].partition(" ")[0], []).append(episode)
    told = [
        f"## {'PostgreSQL' if backend == STACK else 'SQLite'}\n",
        f"{HOSTS[backend]}.\n",
        _about(part),
    ]
    rows = [_sum_up(name, episodes) for name, episodes in frameworks.items()]
    rows.append(_sum_up("**all**", part["episodes"]))
    told += [table(HEADS, rows), _moments(part["episodes"]), _recoveries(part["episodes"])]
    for episode in part["episodes"]:
        if episode["violations"]:
            told.append(f"- **{episode['name']}, seed {episode['seed']}**")
            told += [f"  - {v['invariant']}: {v['text']}"[:300] for v in episode["violations"][:5]]
    return "\n".join([*told, ""])


HEADS = (
    *("", "seeds", "kills", "tasks", "requests to the model", "again: cut off, not kept, used"),
    *(
        "calls of tools",
        "again: cut off, not kept, used",
        "events of tools",
        "pieces of text",
        "streams",
        "violated",
    ),
)


def _sum_up(name: str, episodes: Sequence[Part]) -> Sequence[object]:
    used = Counter(v["invariant"] for episode in episodes for v in episode["violations"])
    return (
        name,
        len(episodes),
        _sum(episodes, "kills"),
        sum(episode["tasks"] for episode in episodes),
        _sum(episodes, "requests"),
        _split(episodes, "requests", used["F4"]),
        _sum(episodes, "calls"),
        _split(episodes, "calls", used["F5"]),
        _sum(episodes, "tool events"),
        _sum(episodes, "pieces"),
        _sum(episodes, "streams"),
        sum(bool(episode["violations"]) for episode in episodes),
    )


def _split(episodes: Sequence[Part], what: str, used: int) -> str:
    whole = _sum(episodes, f"whole {what} again")
    return f"{_sum(episodes, f'{what} again') - whole}, {whole}, {used}"


def _sum(episodes: Sequence[Part], key: str) -> int:
    return sum(episode["figures"].get(key, 0) for episode in episodes)


def _moments(episodes: Sequence[Part]) -> str:
    total: Counter[str] = sum(
        (Counter(e["figures"].get("moments", {})) for e in episodes), Counter()
    )
    told = ", ".join(f"{times} `{what}`" for what, times in sorted(total.items()))
    return f"The moments of the kills: {told}.\n"


def _recoveries(episodes: Sequence[Part]) -> str:
    found = sorted(_list_recoveries(episodes))
    if not found:
        return ""
    return (
        f"From a kill to the next request or call of its task: median {statistics.median(found):.1f} s, most {found[-1]:.1f} s, "
        "with leases of 3 s; some waited for a process to start, and other work shared the machine.\n"
    )


def _list_recoveries(episodes: Sequence[Part]) -> Iterator[float]:
    for episode in episodes:
        yield from episode["recoveries"]


def _builds(part: Part) -> str:
    heads = ("build", "framework", "caught by", "seed")
    rows = [
        (
            f"`{e['name']}`",
            e["figures"]["framework"],
            e["figures"]["caught by"] or "**nothing**",
            e["seed"],
        )
        for e in part["episodes"]
    ]
    told = "Copies of the host with a mistake, which the checker has to catch; by invariants of `checker.py`.\n"
    return "\n".join(["## Broken builds\n", told, _about(part), table(heads, rows)])
