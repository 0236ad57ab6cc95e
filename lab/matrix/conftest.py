"""A closed host with agents that are alike: an open one, one that calls it, one that asks for a scope, one that is switched off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from a2a_tasks.agents import Agent, Skill, Turn, registry
from a2a_tasks.execution import housekeeping
from tests.support.access.fixtures import closed, issuer
from tests.support.bindings.fixtures import client, host, local

__all__ = ["agents", "client", "closed", "host", "issuer", "local"]


class Ledger(Agent, abstract=True):
    """Tells how much it was shown."""

    name = "Ledger"
    description = "Counts what its caller may see."
    skills = [Skill("count", "Count", "Counts", tags=["x"])]
    streaming = push_notifications = has_extended_card = True

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Ask if told so, and keep something in the conversation; else count."""
        conversation = turn.conversation
        if turn.text == "ask":
            await conversation.memory.set("kept", "mine")
            await conversation.append("log", "mine")
            yield turn.ask("what?")
            return
        kept = await conversation.memory.get("kept", ""), await conversation.items("log")
        said = len(await conversation.history())
        seen = len(await turn.references), len(await turn.history), sorted(turn.memory), kept, said
        yield turn.artifact(f"{seen}", id="seen", name="seen")

    def extended_card(self, card: Mapping[str, Any], caller: Any) -> Mapping[str, Any]:
        """The public card, and a word more."""
        return {**card, "description": f"{self.description} More of it."}


class Open(Ledger, abstract=True):
    """For whoever the host lets in."""

    slug = "ledger"


class Locked(Ledger, abstract=True):
    """For those with a scope."""

    slug = "locked"
    scopes = ("count",)


class Shut(Ledger, abstract=True):
    """Switched off, once it has tasks."""

    slug = "shut"


class Planner(Ledger, abstract=True):
    """Lets the open one ask its question."""

    slug = "planner"
    calls = ("ledger",)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Pass the message on."""
        yield (await turn.call("ledger", turn.text)).text


@pytest.fixture
def agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Host them; nothing of the host's own stirs while requests are compared."""
    monkeypatch.setattr(housekeeping, "DUTIES", [])
    monkeypatch.setattr(housekeeping, "LOOK_EVERY", 600.0)
    settings.A2A_POLL_SECONDS = 600.0  # on a busy machine a test lasts longer than a minute
    settings.A2A_CREDENTIAL_SECONDS = 600.0  # what operators have switched is read again then
    settings.A2A_BEAT_SECONDS, settings.A2A_LEASE_SECONDS = 600.0, 1800.0
    settings.A2A_JWT_TENANT_CLAIM = "org"
    settings.A2A_PARK_SECONDS = 0.0
    found = [Open(), Locked(), Shut(), Planner()]
    registry._found.update({agent.slug: agent for agent in found})
    yield
    for agent in found:
        del registry._found[agent.slug]


@pytest.fixture(autouse=True)
def _commits(transactional_db: None) -> None:
    """Each answer is compared with the statements it took, and with the savepoints of production."""
