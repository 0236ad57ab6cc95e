"""The linter of prose: docstrings and comments that begin with words that hide their subject. `make lint` runs it.

A docstring begins with its subject or with a verb: "What the settings say" is "The limits in the settings".
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKED = ("a2a_project", "a2a_console", "a2a_push", "a2a_tasks", "examples")
BANNED = re.compile(
    r"(Whoever|Whatever|Nobody|Somebody|Anybody|Have|The same|What|Who|Whom|Whose|Which|How)\b"
)


def find(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the first words of each docstring and comment that begins with a banned word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if BANNED.match(text):
                yield node.body[0].lineno, text.splitlines()[0]
    before = (0, False)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, alone = token.start[0], not token.line[: token.start[1]].strip()
            text = token.string.lstrip("#: ")
            continues = before == (line - 1, True) and alone
            if not continues and BANNED.match(text):
                yield line, text
            before = (line, alone)


def main() -> int:
    """Print what was found; 1 if there is anything."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for folder in CHECKED
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in sorted(find(path.read_text()))
    ]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
