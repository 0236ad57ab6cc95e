"""The example `travel`, in a host of its own backend: by hand, and with the scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module, reload
from typing import Any

import pytest

from a2a_tasks.agents import Agent, registry
from a2a_tasks.models import Delegation
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import CLIENTS, status_text, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
SLUGS = ("flights", "hotels", "booking", "planner", "travel-agent")
OFFER = "flight to Rome at 9:40 and hotel near the station of Rome"


@pytest.fixture
def agents(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Agent]]:
    """The agents of the app, as a host finds them when it starts."""
    monkeypatch.setenv("CHAT_URL", model.url)
    supervisor: Any = reload(import_module("examples.travel.supervisor"))
    CLIENTS.append(supervisor.supervisor.model.client)
    app: Any = reload(import_module("examples.travel.agents"))
    monkeypatch.setattr(app, "SECONDS", 0.0)
    for cls in (app.Flights, app.Hotels, app.Booking, app.Planner):
        registry.register(cls)
    found = {slug: registry._found[slug] for slug in SLUGS}
    yield found
    for agent in found.values():
        del registry._found[agent.slug]
        type(agent).abstract = True


def called() -> set[str]:
    """The agents that were called, each once. For a thread with a connection."""
    found = list(Delegation.objects.values_list("child__agent", flat=True))
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize(
    ("answer", "said", "others"),
    [
        ("yes", f"booked: {OFFER}", {"flights", "hotels", "booking"}),
        ("no", "Nothing is booked.", {"flights", "hotels"}),
    ],
)
async def test_the_planner_asks_before_it_books(
    agents: dict[str, Agent], answer: str, said: str, others: set[str]
) -> None:
    async with hosting():
        client = Client(agents["planner"])
        asked = await client.send("Rome")
        assert status_text(asked).startswith(f"May I book the {OFFER}?")
        done = await client.send(answer, task_id=asked.id)
    assert text_of(done) == [said]
    assert await run_in_thread(called) == others


async def test_a_model_plans_with_the_same_agents(agents: dict[str, Agent]) -> None:
    async with hosting():
        client = Client(agents["travel-agent"])
        find = 'CALL flights {"message": "Rome"} + CALL hotels {"message": "Rome"}'
        asked = await client.send(f'{find}\nCALL booking {{"message": "both"}}\nSAY $RESULT')
        assert status_text(asked).startswith('May I call booking(message="both")?')
        assert await run_in_thread(called) == {"flights", "hotels"}
        done = await client.send("yes", task_id=asked.id)
    assert text_of(done) == ["booked: both"]
    assert await run_in_thread(called) == {"flights", "hotels", "booking"}


def test_all_are_in_order(agents: dict[str, Agent]) -> None:
    assert [list(agent.check()) for agent in agents.values()] == [[]] * len(SLUGS)
