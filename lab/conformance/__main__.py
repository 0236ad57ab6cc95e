"""`python -m lab.conformance KITS [--only WORDS]`: run the kits whose checkouts are in the folder KITS."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.conformance.host import DATABASE
from lab.conformance.kits import PARTS, Part
from lab.conformance.page import list_unexpected, write
from lab.conformance.running import Result, run
from lab.faultlab.report import REPORTS


def main(
    arguments: Sequence[str] | None = None,
    parts: Sequence[Part] = PARTS,
    to: Path = REPORTS,
    run: Callable[[Part, Path], Result] = run,
) -> int:
    """Run them one after the other, telling how it goes; write the page. 1 if a test fails that is not known to."""
    known = argparse.ArgumentParser(prog="python -m lab.conformance", description=__doc__)
    known.add_argument("kits", type=Path, help="a folder of checkouts, named as in docs/clients.md")
    known.add_argument("--only", default="", help="kits and parts whose name has this")
    options = known.parse_args(arguments)
    results = [
        _tell(part, options.kits.resolve(), run)
        for part in parts
        if options.only in f"{part.kit} {part.name}"
    ]
    page, unexpected = write(results, to), list_unexpected(results)
    print(f"{len(unexpected)} unexpected failures; {page} is written")
    return 1 if unexpected else 0


def _tell(part: Part, kits: Path, run: Callable[[Part, Path], Result]) -> Result:
    print(f"== {part.kit}, {part.name}", flush=True)
    begin = time.monotonic()
    result = run(part, kits / part.kit)
    out = result.outcome
    told = f"{out.passed} passed, {len(out.failed)} failed, {out.skipped} skipped"
    print(f"   {result.note or told}, {time.monotonic() - begin:.0f} s", flush=True)
    for test in out.failed:
        print(f"   failed: {test}", flush=True)
    return result


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(DATABASE, ignore_errors=True)
