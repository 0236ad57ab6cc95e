"""What the pages say is what the code says, and what they point to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
NAMED = re.compile(r"`((?:a2a_\w+|docs|examples|templates|tests)/[\w/.-]+)`")
TARGET = re.compile(r"`make ([a-z-]+)")


def test_the_generated_parts_are_fresh() -> None:
    check = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
class TestAPage:
    def test_links_to_what_is_there(self, page: Path) -> None:
        found = LINK.findall(page.read_text(encoding="utf-8"))
        assert [link for link in found if not (page.parent / link).exists()] == []

    def test_names_files_that_are_there(self, page: Path) -> None:
        found = NAMED.findall(page.read_text(encoding="utf-8"))
        assert [name for name in found if not (ROOT / name).exists()] == []

    def test_names_targets_of_make_that_are_there(self, page: Path) -> None:
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(TARGET.findall(page.read_text(encoding="utf-8"))) <= set(targets)
