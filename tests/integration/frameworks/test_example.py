"""The example `executors`, in a host of its own backend."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module, reload

import pytest

from a2a_tasks.agents import Agent, registry
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import seen, status_text

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
SLUGS = ("hello", "poem")


@pytest.fixture
def agents() -> Iterator[dict[str, Agent]]:
    """The agents of the app, as a host finds them when it starts."""
    reload(import_module("examples.executors.agents"))
    found = {slug: registry._found[slug] for slug in SLUGS}
    yield found
    for agent in found.values():
        del registry._found[agent.slug]
        type(agent).abstract = True


async def test_one_says_hello(agents: dict[str, Agent]) -> None:
    async with hosting():
        assert await seen(Client(agents["hello"]), "hi") == [
            "working",
            "working: Thinking ...",
            "artifact hello: Hello, world! You said: hi (last)",
            "completed: Done.",
        ]


async def test_the_other_asks_and_recites_in_pieces(agents: dict[str, Agent]) -> None:
    async with hosting():
        client = Client(agents["poem"])
        task = await client.send("a poem, please")
        assert status_text(task) == "A poem about what?"
        assert await seen(client, "rose", task_id=task.id) == [
            "artifact poem: rose is a rose",
            "artifact poem +  is a rose",
            "artifact poem +  is a rose. (last)",
            "completed",
        ]


async def test_they_may_run_in_processes_of_their_own(
    agents: dict[str, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    monkeypatch.setenv("A2A_APPS", "examples.executors")
    monkeypatch.setattr(type(agents["poem"]), "runs_in", "process")
    async with hosting():
        client = Client(agents["poem"])
        task = await client.send("a poem, please")
        assert status_text(task) == "A poem about what?"
        assert (await seen(client, "rose", task_id=task.id))[-2:] == [
            "artifact poem +  is a rose. (last)",
            "completed",
        ]


def test_both_are_in_order(agents: dict[str, Agent]) -> None:
    assert [list(agent.check()) for agent in agents.values()] == [[], []]
