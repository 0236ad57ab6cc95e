"""The tools of all agents here. They note their calls, for the tests."""

import os
from pathlib import Path

LEDGER = "TOOL_LEDGER"


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
