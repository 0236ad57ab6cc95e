"""The smoke of the odd inputs: what once stopped a process for seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.oddinput.conftest import watch
from lab.oddinput.doors import PLAIN, list_doors, list_odd
from lab.oddinput.measuring import Measured
from lab.oddinput.test_oddinput import no_harm
from tests.journeys.hosts import Web, web

pytestmark = pytest.mark.backend("stack")
#: A path in the log, cookies with backslashes, parameters of media types, escapes.
DOORS = {"/", "/admin/login/ Cookie in quotes", "/admin/login/ Content-Type in quotes", "/agents/"}
KINDS = {PLAIN, "eyJ-", "\\", "\\a", ";", "%"}


@pytest.fixture
def alone(emptied: None, tmp_path: Path) -> Iterator[Web]:
    """A web process, which needs no worker for these."""
    with web(watch(tmp_path)) as made:
        yield made


def test_what_once_stopped_a_process_does_no_harm(alone: Web, tmp_path: Path) -> None:
    odds = list_odd([one for one in list_doors() if one.name in DOORS])
    measured = Measured(alone.process.process.pid, tmp_path)
    no_harm(measured, [odd for odd in odds if odd.kind in KINDS], alone.url)
