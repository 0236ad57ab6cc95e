"""The tables of clients in docs/reference/known-clients.md are those of the campaign, and name the releases that are pinned."""

from __future__ import annotations

import json
import re

import pytest

from lab.clients import at_doors
from lab.clients.at_doors import AT_DOORS, AtDoor
from lab.clients.known import KNOWN, Known, table
from lab.clients.programs.environments import HERE
from tests import ROOT


@pytest.mark.parametrize("table", [table(), at_doors.table()], ids=["A2A", "doors"])
def test_the_page_has_the_table_of_the_campaign(table: str) -> None:
    page = (ROOT / "docs" / "reference" / "known-clients.md").read_text(encoding="utf-8")
    assert table in page, f"put this into docs/reference/known-clients.md:\n{table}"


@pytest.mark.parametrize("known", [*KNOWN, *AT_DOORS], ids=lambda known: known.name)
def test_a_row_names_the_release_that_its_environment_has(known: Known | AtDoor) -> None:
    package, release = known.name.partition(",")[0].split()
    script = HERE / known.client.script
    if known.client.javascript:
        pins = json.loads((script.with_suffix("") / "package.json").read_text())["dependencies"]
    else:
        text = (HERE / (known.client.pins or f"{script.stem}.txt")).read_text()
        pins = dict(re.findall(r"^([\w-]+)(?:\[.*\])?==(.*)$", text, re.MULTILINE))
    assert pins[package] == release
