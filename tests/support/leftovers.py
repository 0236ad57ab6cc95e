"""A run of the tests leaves nothing in the checkout: if files are new there at its end, the run fails with their names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

__all__ = ["Leftovers"]

#: What tools keep for the next time, and `var`, where the host and the tests keep what is theirs.
KEPT = {
    ".git", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "__pycache__", "var",
}  # fmt: skip


class Leftovers:
    """A plugin of the process that controls the run: it lists the files before and after, with or without git."""

    def __init__(self, folder: Path = ROOT) -> None:
        self._folder = folder
        self._before = self._files()
        self.new: list[str] = []

    def _files(self) -> set[str]:
        found = set()
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if name not in KEPT]
            found |= {str((Path(folder) / name).relative_to(self._folder)) for name in names}
        return found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        """Fail the run. Last, when the processes of `pytest -n` have ended."""
        self.new = sorted(self._files() - self._before)
        if self.new:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name them."""
        for name in self.new:
            terminalreporter.write_line(f"LEFT in the checkout by this run: {name}", red=True)
