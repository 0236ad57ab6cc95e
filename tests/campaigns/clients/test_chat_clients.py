"""Published clients of OpenAI's API and of AG-UI at the host's doors, in JavaScript; those in Python are in the suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.access.api_keys import issue
from tests.campaigns.clients.programs.environments import NODE, Unavailable
from tests.campaigns.clients.published import Client, Say, Told
from tests.journeys.hosts import Host, host

#: The first run makes the environment.
pytestmark = [
    pytest.mark.timeout(1200),
    *([pytest.mark.xfail(run=False, reason=NODE)] if NODE else []),
]
CHECKS = {
    "OPENAI": ("chats", "streams", "stops", "repeats", "tells_failures"),
    "AG-UI": ("runs", "interrupts", "fills_forms", "gives_up", "fails", "cancels"),
}


@pytest.fixture(scope="module")
def key(emptied: None, django_db_blocker: DjangoDbBlocker) -> str:
    """An API key: these clients send one in any case."""
    with django_db_blocker.unblock():
        try:
            return issue("campaign").key
        finally:
            connections.close_all()


@pytest.fixture(scope="module")
def one(emptied: None) -> Iterator[Host]:
    """A host with the doors."""
    with host({"A2A_DOORS": "openai,ag-ui"}) as made:
        yield made


@pytest.fixture(scope="module")
def told(one: Host, key: str, say: Say) -> Told:
    """What went wrong."""
    found: Told = {}
    for binding, checks in CHECKS.items():
        client = Client("chat_js.mjs", "", (binding,))
        try:
            found |= client.converse(say, checks, one.here, environ={"KEY": key})
        except Unavailable as why:
            found |= dict.fromkeys([(binding, check) for check in checks], str(why))
    return found


@pytest.mark.parametrize(
    ("binding", "check"), [(binding, check) for binding in CHECKS for check in CHECKS[binding]]
)
def test_a_published_client_does_what_it_can(told: Told, binding: str, check: str) -> None:
    assert not told[binding, check]
