"""What the command `a2a-host` refuses, and what it leaves to the project's manage.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from a2a_host.command import USAGE, main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a2a_host(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Call the command."""
    monkeypatch.setattr(sys, "argv", ["a2a-host", *words])
    main()


@pytest.mark.parametrize("words", [[], ["--help"], ["new"], ["agent"], ["agent", "add"]])
def test_an_incomplete_command_is_told_what_there_is(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as told:
        a2a_host(monkeypatch, *words)
    assert told.value.code == USAGE


@pytest.mark.parametrize("words", [["up"], ["check"], ["agent", "add", "weather"]])
def test_a_command_of_a_project_needs_one(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        SystemExit, match=r"There is no manage\.py here\. `a2a-host new NAME` writes a project"
    ):
        a2a_host(monkeypatch, *words)


def test_a_new_project_overwrites_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "demo").mkdir()
    with pytest.raises(SystemExit, match="demo exists already"):
        a2a_host(monkeypatch, "new", "demo")
    assert list((here / "demo").iterdir()) == []


def test_every_other_command_becomes_one_of_manage_py(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "manage.py").touch()
    became: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda program, words: became.append((program, words)))
    a2a_host(monkeypatch, "check", "--deploy")
    a2a_host(monkeypatch, "manifest")
    assert became == [
        (sys.executable, [sys.executable, "manage.py", *words])
        for words in (("check", "--deploy"), ("agent_versions", "manifest"))
    ]
