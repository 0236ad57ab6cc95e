"""Docstrings begin with their subject: openings that hide it are not used (docs/testing.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests import ROOT

#: Openings that leave the reader to find out what the sentence is about.
BANNED = re.compile(r"(Whoever|Nobody|Somebody|Have\b|The same\b|What\b[^.]*\bis\b)")
APPS = ("a2a_tasks", "a2a_push", "a2a_console", "a2a_project")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def openings() -> Iterator[str]:
    """Yield the place and the first line of each docstring."""
    for path in (path for app in APPS for path in (ROOT / app).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, DOCUMENTED) and (said := ast.get_docstring(node)):
                name = getattr(node, "name", "")
                yield f"{path.relative_to(ROOT)} {name}: {said.splitlines()[0]}"


def test_docstrings_begin_with_their_subject() -> None:
    assert [line for line in openings() if BANNED.match(line.partition(": ")[2])] == []
