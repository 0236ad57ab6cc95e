"""The tools of all agents here. They note their calls, for the tests."""

import json
import os
from pathlib import Path
from typing import Any

LEDGER = "TOOL_LEDGER"


class LedgerFile:
    """The file in which the tools of all processes note their calls."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def calls(self) -> list[Any]:
        """Return the argument of each call, or all of them."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        noted = [tuple(map(int, line.split()[1:])) for line in lines]
        return [call if len(call) > 1 else call[0] for call in noted]


def note(call: str) -> None:
    """Note a call in the file that the environment names, if it names one."""
    if path := os.environ.get(LEDGER):
        with Path(path).open("a") as file:
            file.write(f"{call}\n")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    note(f"add {a} {b}")
    return a + b


def pay(amount: int) -> str:
    """Pay an amount."""
    note(f"pay {amount}")
    return f"paid {amount}"


def halve(a: int) -> str:
    """Return half of a surrogate pair, as `json.loads` makes it."""
    note(f"halve {a}")
    return str(json.loads('"x\\ud83dy"')) * a
