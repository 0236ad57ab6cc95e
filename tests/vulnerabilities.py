"""`python -m tests.vulnerabilities`: are there known vulnerabilities in what is installed here?

Compares what is installed with the snapshot of advisories (`tests/advisories.json`), which needs no network, and asks PyPI,
by pip-audit. Exit code 1 for a vulnerability that either knows. A service that cannot be asked, or does not know a package,
is no reason to fail, nor is an old snapshot; but each is said aloud: an audit that looked at nothing must not look like one
that found nothing.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tests.advisories import Snapshot, find_flaws, installed, read_snapshot

__all__ = ["FRESH", "IGNORED", "NOT_AUDITED", "audited", "compare", "main", "verdict"]

#: Vulnerabilities that do not concern us: by id, with the reason.
IGNORED: Mapping[str, str] = {
    "PYSEC-2023-228": "of pip with Mercurial addresses; nothing here is installed from one, and the host has no pip",
}
#: Days after which a snapshot counts as old.
FRESH = datetime.timedelta(days=30)
#: Seconds for one question, and for all of them.
ANSWER_SECONDS, SECONDS = 15, 180
NOT_AUDITED = "== NOT AUDITED:"


def audited() -> Sequence[Mapping[str, Any]] | None:
    """What the service says of every package installed beside this Python; None if it could not be asked."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    command += ["--vulnerability-service", "pypi", "--timeout", str(ANSWER_SECONDS)]
    command += [word for known in IGNORED for word in ("--ignore-vuln", known)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603 - words of ours
        found: Sequence[Mapping[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return None
    return found


def verdict(packages: Sequence[Mapping[str, Any]] | None) -> tuple[list[str], int]:
    """What to say, and the exit code."""
    if packages is None:
        return [f"{NOT_AUDITED} the vulnerability service of PyPI cannot be reached"], 0
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    lines = [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in {_versions(flaw)}"
        for package in packages
        for flaw in package.get("vulns", ())
    ]
    failed = bool(lines)
    if unknown:
        lines.append(f"{NOT_AUDITED} the service does not know {_named(unknown, len(packages))}")
    known = len(packages) - len(unknown)
    lines.append(f"{known} packages audited, {len(lines) - bool(unknown)} vulnerabilities")
    return lines, int(failed)


def compare(
    packages: Mapping[str, str], snapshot: Snapshot, today: datetime.date
) -> tuple[list[str], int]:
    """What to say of a snapshot, and the exit code."""
    flaws = [(name, flaw) for name, flaw in find_flaws(packages, snapshot) if flaw not in IGNORED]
    lines = [f"{name} {packages[name]}: {flaw}, by the snapshot" for name, flaw in flaws]
    age = today - snapshot.date
    if age > FRESH:
        lines.append(
            f"{NOT_AUDITED} advisories after {snapshot.date}: the snapshot is {age.days} days old "
            "(`python -m tests.advisories FOLDER` makes a new one)"
        )
    lines.append(f"{len(packages)} packages compared with the snapshot of {snapshot.date}")
    return lines, int(bool(flaws))


def _versions(flaw: Mapping[str, Any]) -> str:
    return ", ".join(flaw["fix_versions"]) or "no version yet"


def _named(unknown: Sequence[str], of: int) -> str:
    return f"any of {of} packages" if len(unknown) == of else ", ".join(unknown)


def main() -> int:
    """Compare, ask, and say."""
    today = datetime.datetime.now(datetime.UTC).date()
    compared, known = compare(installed(), read_snapshot(), today)
    lines, code = verdict(audited())
    sys.stdout.write("\n".join([*compared, *lines]) + "\n")
    return known or code


if __name__ == "__main__":
    sys.exit(main())
