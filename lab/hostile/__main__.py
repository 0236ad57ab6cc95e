"""`python -m lab.hostile PART`: the security campaign. `make lab-hostile` runs all of it and writes var/reports/security.md."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import django

from lab.hostile import page

Options = argparse.Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a part; 1 if anything was wrong."""
    options = parser().parse_args(arguments)
    os.environ["TEST_BACKEND"] = options.backend
    if options.part == "all":
        return everything(options)
    if options.part == "report":
        print(f"written: {page.write()}")
        return 0
    found = PARTS[options.part](options)
    kept = page.keep(options.part, options.backend, found)
    print(f"{len(found['wrong'])} wrong; kept in {kept}")
    for problem in found["wrong"][:20]:
        print(f"- {problem}")
    return int(bool(found["wrong"]))


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    known = argparse.ArgumentParser(prog="python -m lab.hostile", description=__doc__)
    known.add_argument("part", choices=["all", "report", *PARTS])
    known.add_argument("--backend", choices=["sqlite", "stack"], default="sqlite")
    known.add_argument("--requests", type=int, default=10_000)
    known.add_argument("--first", type=int, default=0, help="number of the first request")
    known.add_argument("--rounds", type=int, default=300)
    return known


def matrix(options: Options) -> dict[str, Any]:
    """The cross-access matrix, as the tests have it."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "lab/matrix/test_matrix.py"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    cells = re.findall(r"cells of the cross-access matrix: (\d+)", told)
    wrong = re.findall(r"^FAILED .*$", told, re.MULTILINE) or ([] if cells else ["no cells"])
    taken = round(time.monotonic() - begun)
    return {"cells": sum(map(int, cells)), "wrong": wrong, "seconds": taken}


def _set_up() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()


def requests(options: Options) -> dict[str, Any]:
    """Hostile requests over sockets."""
    _set_up()
    from lab.hostile import campaign  # noqa: PLC0415 - importable only once Django is set up

    return campaign.requests(options.first, options.requests)


def times(options: Options) -> dict[str, Any]:
    """Foreign and missing, by the clock."""
    _set_up()
    from lab.hostile import campaign  # noqa: PLC0415

    found = campaign.times(options.rounds)
    slower = {word: medians["difference"] for word, medians in found["medians"].items()}
    wrong = [f"{word}: {ms:.2f} ms" for word, ms in slower.items() if abs(ms) >= page.MAX_MS]
    return {**found, "wrong": wrong}


PARTS = {"matrix": matrix, "requests": requests, "times": times}
#: What `all` runs, each in a process of its own, since a backend is chosen when a process begins.
ALL = [
    ("matrix", "sqlite"),
    ("matrix", "stack"),
    ("requests", "sqlite"),
    ("requests", "stack"),
    ("times", "sqlite"),
    ("times", "stack"),
]


def everything(options: Options) -> int:
    """All parts, and the report."""
    worst = 0
    for part, backend in ALL:
        print(f"== {part} on {backend}", flush=True)
        command = [sys.executable, "-m", "lab.hostile", part]
        more = ["--backend", backend, "--requests", str(options.requests)]
        more += ["--rounds", str(options.rounds)]
        worst = max(worst, subprocess.run([*command, *more], check=False).returncode)
    print(f"written: {page.write()}")
    return worst


if __name__ == "__main__":
    sys.exit(main())
