"""What the kits report: JUnit XML, the JSON of our programs in `inside`, and the marks that ARD's tool prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

__all__ = ["Outcome", "Unreadable", "read"]


class Unreadable(Exception):
    """A report that is missing, broken or empty."""


@dataclass
class Outcome:
    """How many tests passed or were skipped, and what the others say, by name."""

    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: int = 0


def read_junit(text: str) -> Outcome:
    """Read the report of pytest; errors count as failures."""
    outcome = Outcome()
    for case in ET.fromstring(text).iter("testcase"):  # noqa: S314 - of a kit that has just run here
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        wrong = [one for one in case if one.tag in {"failure", "error"}]
        if wrong:
            outcome.failed[name] = wrong[0].get("message") or "no message"
        elif case.find("skipped") is not None:
            outcome.skipped += 1
        else:
            outcome.passed += 1
    return outcome


def read_json(text: str) -> Outcome:
    """Read an object of names and faults; an empty fault is none."""
    faults: dict[str, str] = json.loads(text)
    failed = {name: fault for name, fault in faults.items() if fault}
    return Outcome(len(faults) - len(failed), failed)


def read_marks(text: str) -> Outcome:
    """Read lines that begin with ✓ or ✗."""
    marks = re.findall(r"^ *([✓✗]) (.*)$", re.sub(r"\x1b\[\d+m", "", text), re.MULTILINE)
    failed = {line: line for mark, line in marks if mark == "✗"}
    return Outcome(sum(mark == "✓" for mark, _ in marks), failed)


READERS: dict[str, Callable[[str], Outcome]] = {
    ".xml": read_junit,
    ".json": read_json,
    ".log": read_marks,
}


def read(path: Path) -> Outcome:
    """Read a report, whose ending tells its form. Raises Unreadable."""
    try:
        outcome = READERS[path.suffix](path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Unreadable("there is no report") from None
    except (ET.ParseError, ValueError, AttributeError) as error:
        raise Unreadable(f"the report cannot be read: {error}") from None
    if not outcome.passed and not outcome.failed and not outcome.skipped:
        raise Unreadable("the report has no tests")
    return outcome
