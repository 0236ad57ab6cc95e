"""Makes the environments, and runs the tests of each in it: `python -m lab.frameworks [NAME ...]`.

An environment that cannot be installed here is skipped, and the last line of pip says why.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: Longest time to install an environment, in seconds. That of CrewAI has a gigabyte.
SECONDS = 1200


def main(names: list[str]) -> int:
    """Run the tests of these frameworks, or of all; return 1 if any failed."""
    found = sorted(path.parent.name for path in HERE.glob("*/requirements.txt"))
    if unknown := set(names) - set(found):
        print(f"There is no {', '.join(sorted(unknown))} among {', '.join(found)}.")
        return 1
    results = {name: run(name) for name in names or found}
    for name, result in results.items():
        print(f"{name}: {result}")
    return int("failed" in results.values())


def run(name: str) -> str:
    """Return `passed`, `failed`, or why the tests were skipped."""
    print(f"== {name}", flush=True)
    environment = ROOT / "var" / "frameworks" / name
    if fault := install(environment, HERE / name / "requirements.txt"):
        return f"skipped, because it cannot be installed here: {fault}"
    tests = ["-c", str(HERE / "pytest.ini"), "--rootdir", str(ROOT), f"lab/frameworks/{name}", "-q"]
    command = [str(environment / "bin" / "python"), "-m", "pytest", *tests]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    return "failed" if status else "passed"


def install(environment: Path, requirements: Path) -> str:
    """Make an environment, unless it is there already; return why it cannot be made."""
    texts = [path.read_bytes() for path in (HERE / "requirements.txt", requirements)]
    wanted, stamp = hashlib.sha256(b"".join(texts)).hexdigest(), environment / ".made"
    if stamp.is_file() and stamp.read_text() == wanted:
        return ""
    python = str(environment / "bin" / "python")
    make = [sys.executable, "-m", "venv", "--clear", str(environment)]
    fill = [python, "-m", "pip", "install", "--quiet", "-r", str(requirements)]
    for command in (make, fill):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"it takes more than {SECONDS} s"
        if done.returncode:
            *_, reason = ["no reason was given", *done.stderr.strip().splitlines()]
            return reason
    stamp.write_text(wanted)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
