"""`var/reports/security.md`: the figures of the last campaign, from what is kept under `var/security`."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.faultlab.report import REPORTS, save
from tests import ROOT

__all__ = ["MAX_MS", "keep", "write"]

KEPT = ROOT / "var" / "security"
PAGE = REPORTS / "security.md"
#: Milliseconds by which the medians of what is another's and of what is not there may differ.
MAX_MS = 2.0
BACKENDS = {"sqlite": "SQLite, one process", "stack": "PostgreSQL, Redis, a Celery worker"}
INTRODUCTION = """\
# Security report

What the campaign (`lab/hostile`) found the last time: `make lab-hostile` runs all of it and writes this page. What is promised, and which test holds it, is in [security](../../docs/security.md).
"""
Kept = Mapping[str, Any]


def keep(part: str, backend: str, found: Kept) -> Path:
    """Keep what a part has found. Returns where."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{part}-{backend}.json"
    command = f"python -m lab.hostile {part} --backend {backend}"
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    about = {"part": part, "backend": backend, "command": command, "when": when}
    path.write_text(json.dumps({**about, **found}, indent=1), encoding="utf-8")
    return path


def write() -> Path:
    """Write the page anew; parts that were never run are left out. Returns its path."""
    kept = [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]
    machine = f"Machine: {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}; other work may have shared it.\n"
    sections = [INTRODUCTION, machine]
    for part, tell in SECTIONS.items():
        if of := [one for one in kept if one["part"] == part]:
            sections.append(tell(of))
    return save(PAGE, sections)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""])


def _commands(of: Sequence[Kept]) -> str:
    return "".join(f"- `{one['command']}`, {one['when']} UTC, {one['seconds']} s\n" for one in of)


def _problems(of: Sequence[Kept]) -> str:
    told = [f"- {one['backend']}: {text}"[:300] for one in of for text in one["wrong"][:10]]
    return "\n".join(["", "What is wrong:", "", *told, ""]) if told else ""


def _matrix(of: Sequence[Kept]) -> str:
    rows = [(BACKENDS[one["backend"]], one["cells"], len(one["wrong"])) for one in of]
    return (
        "## The cross-access matrix\n\n"
        "Every operation, on every wire, for an object of Alice's, asked by a colleague, by the same name in another tenant, without credentials on an open and on a closed host, with credentials\n"
        "that have expired, are made out to another agent or lack the scope, at an agent that is switched off, and by Alice herself. A cell passes if status, headers, bytes, effect on\n"
        "the tables and statements asked of the database are those of the same request for what is not there (and Alice's are not).\n\n"
        + table(("backend", "cells", "wrong"), rows)
        + "\n"
        + _commands(of)
        + _problems(of)
    )


def _requests(of: Sequence[Kept]) -> str:
    heads = ("backend", "requests", "of them over gRPC", "and broken framing", "accepted", "refused", "cut off", "answers by status", "memory, MB", "wrong")  # fmt: skip
    rows = [
        (
            BACKENDS[one["backend"]],
            one["requests"],
            one["calls"],
            one["framing"],
            one["accepted"],
            one["refused"],
            one["cut"],
            ", ".join(f"{count} {status}" for status, count in one["statuses"].items()),
            " to ".join(map(str, one["memory"])),
            len(one["wrong"]),
        )
        for one in of
    ]
    bends: dict[str, int] = {}
    for one in of:
        for name, count in one["bends"].items():
            bends[name] = bends.get(name, 0) + count
    return (
        "## Hostile requests\n\n"
        "Requests of the golden conversations, of every dialect over each binding, and calls of every rpc of both gRPC packages, bent once or more, and sent to a running host over sockets. Each answer must be well-formed in its dialect, no 5xx but\n"
        "a 503 with `Retry-After`, over gRPC neither `UNKNOWN` nor `INTERNAL`, and say nothing of Python, the database or a path; what was refused must have changed no table; afterwards the processes must work, have logged no error and be of the same size\n"
        "(memory after the first requests, and at the end). Lines over 16 KB may be cut off. Beside them bytes that are no HTTP and no HTTP/2, or whose end two readers would see in different places.\n\n"
        + table(heads, rows)
        + "\nBent in these ways (some in more than one): "
        + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in bends.items())
        + ".\n\n"
        + _commands(of)
        + _problems(of)
    )


def _times(of: Sequence[Kept]) -> str:
    words = dict.fromkeys(word for one in of for word in one["medians"])
    heads = ["asked"]
    for one in of:
        heads += [f"{one['backend']}: another's", "not there", "median difference"]
    rows = []
    for word in words:
        cells: list[object] = [word]
        for one in of:
            medians = one["medians"][word]
            foreign, absent, difference = (
                medians[name] for name in ("foreign", "missing", "difference")
            )
            cells += [f"{foreign:.2f}", f"{absent:.2f}", f"{difference:+.2f}"]
        rows.append(cells)
    return (
        "## Time\n\n"
        f"Median milliseconds of a request for what is another's and for what is not there, asked in turns over one connection, {of[0]['rounds']} of each, up to five times as many where other work on the machine made the difference doubtful. The median of the differences, pair by pair, must be under {MAX_MS:g} ms.\n\n"
        + table(heads, rows)
        + "\n"
        + _commands(of)
        + _problems(of)
    )


SECTIONS = {"matrix": _matrix, "requests": _requests, "times": _times}
