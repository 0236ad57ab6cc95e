"""The README is short, and its code is whole; lab/server/test_readme.py runs it."""

from __future__ import annotations

import json
import re
import shlex
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from a2a_project import __version__
from tests import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(README)


def test_it_is_no_longer_than_a_page() -> None:
    assert len(README.splitlines()) <= 120


def test_the_agent_is_the_one_that_startagent_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call_command("startagent", "shouter", stdout=StringIO())
    (source,) = [text for kind, text in BLOCKS if kind == "python" and "(Agent)" in text]
    assert source == (tmp_path / "shouter" / "agents.py").read_text()


def test_every_body_is_json() -> None:
    lines = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    bodies = [re.findall(r"-d ('.*?')", line) for line in lines]
    found = [json.loads(shlex.split(body)[0]) for line in bodies for body in line]
    assert len(found) == 2


def test_the_changelog_begins_with_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", changes, flags=re.MULTILINE)[0] == __version__
