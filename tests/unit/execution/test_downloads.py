"""Fetching under attack: whatever URL a client sends, no connection to the inside is begun."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_tasks.agents import FileUnavailable
from a2a_tasks.agents.http import guard
from a2a_tasks.execution.downloads import fetch
from a2a_tasks.outbound import OutboundPolicy
from tests.support.outbound import vectors
from tests.support.outbound.canary import Canary, canary, watched


@pytest.fixture(scope="module")
def bird() -> Iterator[Canary]:
    """Have a canary on every address of this machine, and hear at the end that it was silent."""
    with canary() as bird:
        yield bird
        assert not bird.sings


@pytest.mark.parametrize("name", vectors.ALL)
async def test_no_url_leads_inside_nor_says_why_it_was_refused(name: str, bird: Canary) -> None:
    for vector in vectors.ALL[name]:
        url = vector.replace("PORT", str(bird.port))
        with watched() as heard, pytest.raises(FileUnavailable) as told:
            await fetch(url)
        assert not [event for event in heard if event[0] == "socket.connect"], url
        assert str(told.value).startswith("The URL of the file must"), url
        assert url not in str(told.value)


def test_the_settings_make_the_policy(settings: object) -> None:
    settings.A2A_FETCH_ALLOW_HTTP = True  # type: ignore[attr-defined]
    settings.A2A_FETCH_ALLOW_NETWORKS = "10.1.0.0/16,files.corp"  # type: ignore[attr-defined]
    settings.A2A_FETCH_PROXY = "http://proxy.corp:3128"  # type: ignore[attr-defined]
    wanted = OutboundPolicy.read(
        http=True, allowed="10.1.0.0/16,files.corp", proxy="http://proxy.corp:3128"
    )
    assert guard().policy == wanted
