"""One part of a kit: run it in its environment, with an end, and read its report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from lab.conformance import kits
from lab.conformance.host import DATABASE, FOLDER, begin, kill_group, serving
from lab.conformance.kits import INSIDE, Part, Unavailable
from lab.conformance.reports import Outcome, Unreadable, read
from tests import ROOT

__all__ = ["Result", "run", "run_command"]


@dataclass
class Result:
    """The outcome of a part; with a note, it was not run."""

    part: Part
    version: str = ""
    note: str = ""
    outcome: Outcome = field(default_factory=Outcome)


def run(part: Part, checkout: Path) -> Result:
    """Run a part of the kit in this checkout, if it is there and can be run here."""
    if not checkout.is_dir():
        return Result(part, note="not given")
    version = kits.read_version(checkout)
    if part.not_run:
        return Result(part, version, note=part.not_run)
    folder = FOLDER / f"{part.kit}-{version}"
    try:
        copy = kits.copy_kit(checkout, folder)
        python = kits.make_python(part.kit, folder)
        if part.name.startswith("ts_"):
            kits.make_node_modules(copy / "agents" / part.name.replace("_", "/"))
        environ = _let_in(python, folder) if part.kit == "a2a-itk" else _common()
    except Unavailable as reason:
        return Result(part, version, note=str(reason))
    host: AbstractContextManager[str] = serving(part.agent) if part.agent else nullcontext("")
    try:
        with host as place:
            words = [word.format(host=place, inside=INSIDE) for word in part.command]
            outcome = run_command([str(python), *words], copy / part.folder, part, environ)
    except TimeoutError as reason:
        outcome = Outcome(failed={"the host": str(reason)})
    return Result(part, version, outcome=outcome)


def run_command(command: list[str], folder: Path, part: Part, environ: dict[str, str]) -> Outcome:
    """Run it until it ends or its time is over, kill what it has begun, and read the report.

    What it prints is in `said.log`. If it hangs, crashes or reports nothing, the outcome has a failure that says so.
    """
    report, log = folder / part.report, folder / "said.log"
    report.unlink(missing_ok=True)
    with log.open("wb") as said:
        process = begin(command, folder, environ, said)
        try:
            status: int | None = process.wait(part.seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            kill_group(process)
    try:
        outcome = read(report)
    except Unreadable as reason:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        outcome = Outcome(failed={"the report": " - ".join([str(reason), *last])})
    if status is None:
        outcome.failed["the kit"] = f"it did not end within {part.seconds:g} s"
    elif status not in {0, 1}:  # 1: a test failed, and the report says which
        outcome.failed["the kit"] = f"it ended with status {status}"
    return outcome


def _common() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("A2A_")}
    ours = {"PYTHONPATH": str(INSIDE), "CONFORMANCE_DATABASE": str(DATABASE)}
    return {**kept, **ours, "PYTEST_ADDOPTS": "--junitxml=reports/junit.xml"}


def _let_in(python: Path, folder: Path) -> dict[str, str]:
    """Return the variables with which the ITK finds the host as its agent `current`, and Python where it looks for uv.

    Its `fuser` kills whoever listens at the ports that it has chosen; what it began is killed in the end anyway.
    """
    older, ours = kits.make_python("a2a-itk-v03", folder), folder / "bin"
    ours.mkdir(exist_ok=True)
    host = f"cd {ROOT} && exec {sys.executable} -m lab.conformance.host"
    uv = f"""#!/bin/sh
shift
case "$PWD" in
  */repo/itk) shift; {host} "$@" ;;
  */v03) exec {older} "$@" ;;
esac
case "$1" in *.py) exec {python} "$@" ;; *) PYTHONPATH= exec {python} -I -S {INSIDE}/listening.py {python} -m "$@" ;; esac
"""
    for name, text in {"uv": uv, "fuser": "#!/bin/sh\n"}.items():
        (ours / name).write_text(text)
        (ours / name).chmod(0o755)
    hop = json.dumps([str(python), str(INSIDE / "hop.py"), str(folder / "kit")])
    return {**_common(), "PATH": f"{ours}:{os.environ['PATH']}", "CONFORMANCE_HOP": hop}
