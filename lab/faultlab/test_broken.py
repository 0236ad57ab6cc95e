"""The broken builds are broken as they say: every mistake fits the code as it is."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path

import pytest

from lab.faultlab.broken import BROKEN, build, spoilt
from lab.faultlab.checker import INVARIANTS
from lab.faultlab.mistake import Broken
from lab.faultlab.scenarios import SCENARIOS
from tests import ROOT

pytestmark = pytest.mark.backend("sqlite")


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    names = {row.name for row in BROKEN}
    assert len(names) == len(BROKEN) >= 18


@pytest.mark.parametrize("row", BROKEN, ids=lambda row: row.name)
def test_the_mistake_fits_the_code(row: Broken) -> None:
    text = (ROOT / row.file).read_text()
    changed = spoilt(row, text)
    assert changed != text
    if row.file.endswith(".py"):
        compile(changed, row.file, "exec")


@pytest.mark.parametrize("row", BROKEN, ids=lambda row: row.name)
def test_somebody_looks_for_it(row: Broken) -> None:
    told = {name for name, _ in INVARIANTS} | {"start"}
    file, *names = row.scenario.split("::")
    if file.startswith(("tests/", "lab/")):
        found: object = import_module(file.removesuffix(".py").replace("/", "."))
        for name in names:  # of a class that tests are inherited by, too
            found = getattr(found, name)
    else:
        assert row.scenario in SCENARIOS
        assert row.breaks and set(row.breaks) <= told


def test_every_scenario_shows_something() -> None:
    assert set(SCENARIOS) <= {row.scenario for row in BROKEN}


def test_a_build_is_a_copy_with_the_mistake_in_it(tmp_path: Path) -> None:
    row = BROKEN[0]
    built = build(row, tmp_path / "build")
    assert row.new in (built / row.file).read_text()
    assert row.old in (ROOT / row.file).read_text()
    assert (built / "manage.py").exists()
    assert (built / "lab/faultlab/agents_app/agents.py").exists()


def test_a_mistake_that_does_not_fit_is_an_error() -> None:
    row = dataclasses.replace(BROKEN[0], old="no such text")
    with pytest.raises(ValueError, match="0 such places"):
        spoilt(row, "text")
    row = dataclasses.replace(BROKEN[0], old="t")
    with pytest.raises(ValueError, match="2 such places"):
        spoilt(row, "text")
