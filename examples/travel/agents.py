"""A planner that calls flights and hotels at once, asks a person, and calls the booking; and the same with pydantic-ai."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Any

from a2a_tasks.agents import Agent, AgentError, Skill, Turn

#: Seconds that an offer takes.
SECONDS = 3.0
FORM = {
    "type": "object",
    "properties": {"book": {"type": "boolean", "title": "Book it"}},
    "required": ["book"],
}


def make_skills(name: str, description: str) -> list[Skill]:
    """Return the only skill of an agent here."""
    return [Skill(name, name.capitalize(), description, tags=["travel"])]


class Flights(Agent):
    """It finds a flight, which takes a while."""

    slug, name, description = "flights", "Flights", "Finds a flight to a city."
    skills = make_skills("flights", description)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Answer with a flight."""
        await turn.sleep(SECONDS)
        yield f"flight to {turn.text} at 9:40"


class Hotels(Agent):
    """It finds a hotel, which takes a while."""

    slug, name, description = "hotels", "Hotels", "Finds a hotel in a city."
    skills = make_skills("hotels", description)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Answer with a hotel."""
        await turn.sleep(SECONDS)
        yield f"hotel near the station of {turn.text}"


class Booking(Agent):
    """It books an offer."""

    slug, name, description = "booking", "Booking", "Books an offer."
    skills = make_skills("booking", description)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Book, once."""
        yield await turn.step("book", self.book, turn.text)

    def book(self, offer: str) -> str:
        """Return the receipt."""
        return f"booked: {offer}"


class Planner(Agent):
    """It calls the others. Their tasks belong to its caller, and end with its task."""

    slug, name, description = "planner", "Planner", "Plans and books a trip to a city."
    skills = make_skills("plan", description)
    calls = ("flights", "hotels", "booking")

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Find offers, and ask; book what a person wants."""
        answer = await turn.answer
        if answer is None:
            offers = await turn.gather(
                turn.call("flights", turn.text), turn.call("hotels", turn.text)
            )
            if any(offer.failed for offer in offers):
                raise AgentError("There is no such trip.")
            turn.memory["offer"] = " and ".join(offer.text for offer in offers)
            yield turn.ask(f"May I book the {turn.memory['offer']}?", form=FORM)
        elif answer["book"]:
            yield (await turn.call("booking", turn.memory["offer"])).text
        else:
            yield "Nothing is booked."


if find_spec("pydantic_ai"):
    from examples.travel import supervisor  # noqa: F401 - it hosts its agent
