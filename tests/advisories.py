"""Known vulnerabilities of the packages that the host uses, from a snapshot that needs no network.

`python -m tests.advisories FOLDER` makes the snapshot anew from a clone of https://github.com/pypa/advisory-database,
whose advisories are those of the Python Packaging Authority (CC BY 4.0). `make audit` compares it with what is installed.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from packaging.version import InvalidVersion, Version

from tests import ROOT

__all__ = ["SNAPSHOT", "Snapshot", "find_flaws", "installed", "read_snapshot"]

SNAPSHOT = ROOT / "tests" / "advisories.json"
SOURCE = "https://github.com/pypa/advisory-database (CC BY 4.0)"
#: The packages whose advisories are kept: all that any requirement of the host has ever installed.
PINNED = ("constraints.txt", "requirements.txt", "requirements-test.txt")


class Snapshot(NamedTuple):
    """The advisories of a day, by the normalised name of the package."""

    date: datetime.date
    advisories: Mapping[str, list[dict[str, Any]]]


def read_snapshot(file: Path = SNAPSHOT) -> Snapshot:
    """Read the snapshot."""
    found = json.loads(file.read_text(encoding="utf-8"))
    return Snapshot(datetime.date.fromisoformat(found["date"]), found["advisories"])


def normalise(name: str) -> str:
    """Return the name by which packages are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, str]:
    """Return the version of every package that is installed beside this Python, by normalised name."""
    found = importlib.metadata.distributions()
    return {normalise(one.name): one.version for one in found if one.name}


def find_flaws(packages: Mapping[str, str], snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield each package with a known vulnerability, and the id of the advisory."""
    for name, version in sorted(packages.items()):
        for advisory in snapshot.advisories.get(name, ()):
            if _concerns(advisory, version):
                yield name, advisory["id"]


def _concerns(advisory: Mapping[str, Any], text: str) -> bool:
    try:
        version = Version(text)
    except InvalidVersion:
        return text in advisory["versions"]
    return text in advisory["versions"] or any(
        _lies_in(version, events) for events in advisory["ranges"]
    )


def _lies_in(version: Version, events: Iterable[tuple[str, str]]) -> bool:
    """Return whether the version lies between two events of a range (the OSV schema, `affected[].ranges[]`)."""
    inside = False
    for kind, at in sorted(events, key=lambda event: Version(event[1])):
        bound = Version(at)
        if kind == "introduced" and version >= bound:
            inside = True
        elif version >= bound and (kind == "fixed" or version > bound):
            inside = False
    return inside


def make_snapshot(clone: Path, names: Iterable[str]) -> Snapshot:
    """Read the advisories of these packages from a clone of the database."""
    day = _git(clone, "log", "-1", "--format=%cs").strip()
    advisories = {name: list(_read_advisories(clone, name)) for name in sorted(set(names))}
    kept = {name: found for name, found in advisories.items() if found}
    return Snapshot(datetime.date.fromisoformat(day), kept)


def _git(clone: Path, *words: str) -> str:
    command = ["git", "-C", str(clone), *words]
    return subprocess.check_output(command, text=True)  # noqa: S603 - words of ours


def _read_advisories(clone: Path, name: str) -> Iterator[dict[str, Any]]:
    for path in _git(clone, "ls-tree", "--name-only", "HEAD", f"vulns/{name}/").split():
        advisory = yaml.safe_load(_git(clone, "show", f"HEAD:{path}"))
        if not advisory.get("withdrawn"):
            yield _shorten(advisory, name)


def _shorten(advisory: Mapping[str, Any], name: str) -> dict[str, Any]:
    mine = [one for one in advisory["affected"] if normalise(one["package"]["name"]) == name]
    ranges = [
        [pair for event in span["events"] for pair in event.items()]
        for one in mine
        for span in one.get("ranges", ())
        if span["type"] == "ECOSYSTEM"
    ]
    versions = [version for one in mine for version in one.get("versions", ())]
    # Most versions lie in a range that is written down, too.
    odd = [each for each in versions if not any(_lies_in(Version(each), span) for span in ranges)]
    return {"id": advisory["id"], "ranges": ranges, "versions": odd}


def _list_pinned() -> set[str]:
    lines = (
        line for file in PINNED for line in (ROOT / file).read_text(encoding="utf-8").split("\n")
    )
    found = (re.match(r"[A-Za-z0-9][\w.-]*", line) for line in lines)
    return {normalise(one[0]) for one in found if one}


def main(clone: str) -> None:
    """Write the snapshot."""
    made = make_snapshot(Path(clone), _list_pinned() | installed().keys())
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(made.advisories[name])}" for name in made.advisories
    )
    head = f'"source": "{SOURCE}",\n"date": "{made.date}"'
    SNAPSHOT.write_text(f'{{{head},\n"advisories": {{\n{lines}\n}}}}\n', encoding="utf-8")
    sys.stdout.write(f"{sum(map(len, made.advisories.values()))} advisories of {made.date}\n")


if __name__ == "__main__":
    main(sys.argv[1])
