"""The generated parts of pages are fresh, and pages name only files, functions and targets of make that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PAGES = sorted(
    [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("*.md"),
        ROOT / "lab/README.md",
        ROOT / "tests/README.md",
    ]
)
NAMED = re.compile(r"`((?:a2a_\w+|deploy|docs|examples|lab|templates|tests)/[\w/.-]+)`")
#: A function or class, and the file that has it: "`say` (`a2a_x/y.py`)".
SYMBOL = re.compile(r"`(?:\w+\.)?(\w+)` \(`(a2a_\w+/[\w/]+\.py)`\)")
TARGET = re.compile(r"`make ([a-z-]+)")
SETTING = re.compile(r"\bA2A_[A-Z0-9_]*[A-Z0-9]\b(?!\*)")
#: The pages with all settings, and a variable for tests alone.
SETTINGS = {
    name
    for page in ("reference/settings.md", "reference/protocol-support.md")
    for name in SETTING.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
} | {"A2A_FAILPOINTS"}
#: Records of the past.
PAST = {"CHANGELOG.md"}


def test_the_generated_parts_are_fresh() -> None:
    check = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
class TestAPage:
    @pytest.mark.checkout
    def test_names_files_that_are_there(self, page: Path) -> None:
        found = NAMED.findall(page.read_text(encoding="utf-8"))
        assert [name for name in found if not (ROOT / name).exists()] == []

    @pytest.mark.checkout
    def test_names_functions_in_the_files_that_have_them(self, page: Path) -> None:
        found = SYMBOL.findall(page.read_text(encoding="utf-8"))
        missing = [
            (name, file)
            for name, file in found
            if not re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8"))
        ]
        assert missing == []

    def test_names_targets_of_make_that_are_there(self, page: Path) -> None:
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(TARGET.findall(page.read_text(encoding="utf-8"))) <= set(targets)

    def test_names_only_settings_that_can_be_set(self, page: Path) -> None:
        if not PAST & set(page.relative_to(ROOT).parts):
            assert set(SETTING.findall(page.read_text(encoding="utf-8"))) <= SETTINGS
