"""A run of the tests leaves the checkout as it was: if files are new or gone at its end, the run fails with their names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

__all__ = ["Leftovers"]

#: What tools keep for the next time.
KEPT = {
    ".git", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "__pycache__",
}  # fmt: skip
#: Where the host and the tests keep what is theirs.
VAR = "var"


class Leftovers:
    """A plugin of the process that controls the run: it lists the files before and after, with or without git."""

    def __init__(self, folder: Path = ROOT) -> None:
        self._folder = folder
        self._before = self._files()
        self.new: list[str] = []
        self.gone: list[str] = []

    def _files(self) -> set[str]:
        found = set()
        for folder, folders, names in os.walk(self._folder):
            kept = {*KEPT, VAR} if Path(folder) == self._folder else KEPT
            folders[:] = [name for name in folders if name not in kept]
            found |= {str((Path(folder) / name).relative_to(self._folder)) for name in names}
        return found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        """Fail the run. Last, when the processes of `pytest -n` have ended."""
        files = self._files()
        self.new, self.gone = sorted(files - self._before), sorted(self._before - files)
        if self.new or self.gone:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name them."""
        for name in self.new:
            terminalreporter.write_line(f"LEFT in the checkout by this run: {name}", red=True)
        for name in self.gone:
            terminalreporter.write_line(f"GONE from the checkout in this run: {name}", red=True)
