"""A host for known callers only, in the process of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_tasks.access import authentication
from a2a_tasks.agents import Agent, Skill, registry
from tests.support.access.issuer import AUDIENCE, Issuer, issuing
from tests.support.bindings.fixtures import client, host, local

__all__ = ["client", "host", "local"]


@pytest.fixture(autouse=True)
def closed(local: None, settings: Any) -> Iterator[None]:
    """Nobody is let in without credentials; nothing is known of callers before or after."""
    settings.A2A_ANONYMOUS = "0"
    settings.A2A_CREDENTIAL_SECONDS = (
        3600.0  # what is known is so to the end, however slow the machine
    )
    authentication.forget()
    yield
    authentication.forget()


@pytest.fixture
async def issuer(settings: Any) -> AsyncIterator[Issuer]:
    """An issuer that the host believes."""
    async with issuing() as made:
        settings.A2A_JWT_ISSUER = made.url
        settings.A2A_PUBLIC_URL = AUDIENCE
        yield made


@pytest.fixture
def guarded() -> Iterator[Agent]:
    """An agent that asks for scopes, at `/agents/guarded`."""

    class Guarded(Agent, abstract=True):
        slug = "guarded"
        name = "Guarded"
        description = "Is for a few."
        scopes = ("invoices", "invoices:write")
        skills = [
            Skill("read", "Read", "Reads", tags=["x"]),
            Skill("pay", "Pay", "Pays", tags=["x"], scopes=["pay"]),
        ]

        async def run(self, turn: Any) -> Any:
            """Tell who asks; pay if told so."""
            if turn.text == "pay":
                turn.require(*self.skills[1].scopes)
            yield f"{turn.caller.principal} {' '.join(sorted(turn.caller.scopes))}"

    registry._found[Guarded.slug] = Guarded()
    yield registry._found[Guarded.slug]
    del registry._found[Guarded.slug]
