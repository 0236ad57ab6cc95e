"""The suite against the built wheel: `python -m tests.wheel [test | test-fast | test-stack]` (`make test-wheel`).

In a directory of its own are the files of the checkout without the packages, and an environment with the wheel and
`requirements-test.txt`. There `make` runs the suite as ever. The variables TESTS and ARGS are passed on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import ROOT
from tests.support.leftovers import KEPT, VAR
from tests.support.wheel import APPS, build_wheel

__all__ = ["main"]


def main(part: str = "test") -> int:
    """Run this part of the suite, and return its code."""
    with tempfile.TemporaryDirectory(prefix="a2a-wheel-") as folder:
        copy, environment = Path(folder, "copy"), Path(folder, "copy", ".venv")
        left_out = shutil.ignore_patterns(*KEPT, VAR, *APPS, "*.egg-info")
        shutil.copytree(ROOT, copy, ignore=left_out, symlinks=True)
        wheel = build_wheel(Path(folder))
        print(f"== {wheel.name}, installed in an environment of its own", flush=True)  # noqa: T201
        step(sys.executable, "-m", "venv", str(environment))
        pip = (str(environment / "bin" / "python"), "-m", "pip", "--quiet", "install")
        step(*pip, "--requirement", str(copy / "requirements-test.txt"), str(wheel))
        for stamp in (".made", ".run", ".test"):
            (environment / stamp).touch()
        own = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        tests = [f"TESTS={own['TESTS']}"] if own.get("TESTS") else []
        arguments = f"ARGS=-p tests.support.installed {own.get('ARGS', '')}"
        command = ["make", "--no-print-directory", part, *tests, arguments]
        return subprocess.run(command, cwd=copy, env=own, check=False).returncode  # noqa: S603 - our own command


def step(*command: str) -> None:
    """Run a step. SystemExit if it fails."""
    if code := subprocess.run(command, check=False).returncode:  # noqa: S603 - our own command
        sys.exit(code)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
