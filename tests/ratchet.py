"""`python -m tests.ratchet`: no part of the code grows unnoticed. `make check` runs it; `tests/ratchet.toml` has the numbers.

Fewer lines by longer functions would be no gain, so nine functions of ten have at most `MAX_LINES` lines.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["check", "main"]

ROOT = Path(__file__).parent.parent
#: The ninth tenth of the lengths of functions, without their docstrings.
MAX_LINES = 20
#: The part by which a number may be above the lines there are; beyond it, it is to be lowered.
SLACK = 0.02


def check(root: Path, parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each part that has grown, or that has become smaller than its number says."""
    flaws = []
    for name, part in parts.items():
        unit = "words" if "words" in part else "lines"
        allowed = part[unit] + sum(rise[unit] for rise in part["rises"])
        found = sum(_count(path, unit) for path in _list_files(root, part, unit))
        if found > allowed:
            flaws.append(
                f"{name} has {found:,} {unit}, and {allowed:,} are allowed: remove some, or name the feature"
            )
        elif found < allowed * (1 - SLACK):
            flaws.append(
                f"{name} has {found:,} {unit} only: write this instead of {allowed:,}, without `rises`"
            )
        if unit == "lines" and (long := _find_ninth_tenth(root, part)) > MAX_LINES:
            flaws.append(
                f"one function of ten in {name} has more than {long} lines; {MAX_LINES} are allowed"
            )
    return flaws


def _list_files(root: Path, part: Mapping[str, Any], unit: str) -> Iterator[Path]:
    without = [root / path for path in part.get("without", [])]
    for folder in part["paths"]:
        for path in sorted((root / folder).rglob("*.md" if unit == "words" else "*.py")):
            if "migrations" not in path.parts and not any(map(path.is_relative_to, without)):
                yield path


def _count(path: Path, unit: str) -> int:
    text = path.read_text(encoding="utf-8")
    return len(text.split()) if unit == "words" else len(text.splitlines())


def _find_ninth_tenth(root: Path, part: Mapping[str, Any]) -> int:
    """Return the length that nine functions of ten do not exceed; 0 without functions."""
    lengths = sorted(
        _measure(node)
        for path in _list_files(root, part, "lines")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return lengths[int(len(lengths) * 0.9)] if lengths else 0


def _measure(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    return (node.end_lineno or 0) - first.lineno + 1


def main() -> int:
    """Print the flaws; return the exit code."""
    parts = tomllib.loads((ROOT / "tests" / "ratchet.toml").read_text(encoding="utf-8"))
    flaws = check(ROOT, parts)
    for flaw in flaws:
        print(f"ratchet: {flaw} (tests/ratchet.toml)")  # noqa: T201 - a command
    return int(bool(flaws))


if __name__ == "__main__":
    sys.exit(main())
