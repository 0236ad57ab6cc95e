"""The table of clients in docs/reference/known-clients.md is that of the campaign, and names the releases that are pinned."""

from __future__ import annotations

import json
import re

import pytest

from tests import ROOT
from tests.campaigns.clients.known import KNOWN, Known, table
from tests.campaigns.clients.programs.environments import HERE


def test_the_page_has_the_table_of_the_campaign() -> None:
    page = (ROOT / "docs" / "reference" / "known-clients.md").read_text(encoding="utf-8")
    assert table() in page, f"put this into docs/reference/known-clients.md:\n{table()}"


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_a_row_names_the_release_that_its_environment_has(known: Known) -> None:
    package, release = known.name.partition(",")[0].split()
    script = HERE / known.client.script
    if known.client.javascript:
        pins = json.loads((script.with_suffix("") / "package.json").read_text())["dependencies"]
    else:
        text = (HERE / (known.client.pins or f"{script.stem}.txt")).read_text()
        pins = dict(re.findall(r"^([\w-]+)(?:\[.*\])?==(.*)$", text, re.MULTILINE))
    assert pins[package] == release
