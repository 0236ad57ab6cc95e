"""`python -m lab.usage`: tasks of four agents while workers are killed; the ledger must have what the model server counts."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from lab.faultlab.campaign import KEPT
from lab.usage.lab import UsageLab, plan, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, print the figures, keep them under `var/faults`; 1 if anything is wrong."""
    known = argparse.ArgumentParser(prog="python -m lab.usage", description=__doc__)
    known.add_argument("--tasks", type=int, default=1000)
    known.add_argument("--kills", type=int, default=50)
    known.add_argument("--seed", type=int, default=1)
    options = known.parse_args(arguments)
    with UsageLab(plan()) as lab:
        episode = run(lab, options.tasks, options.kills, options.seed)
        figures = {
            "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            "tasks": episode.tasks,
            "kills": len(lab.kills),
            "at failpoints": lab.at_points,
            "seconds": round(episode.seconds),
            "violations": [str(one) for one in episode.violations],
            **asdict(lab.judgement),
        }
        if episode.violations:
            lab.keep(KEPT / "usage")
    KEPT.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(figures))
    Path(KEPT / "usage.json").write_bytes(text)
    print(text.decode(), file=sys.stderr)
    return 1 if episode.violations else 0


if __name__ == "__main__":
    sys.exit(main())
