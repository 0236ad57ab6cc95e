"""Which version of an agent serves, and which one a new conversation gets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from a2a_tasks.agents import Agent, Skill, Turn, registry, switches, versions
from a2a_tasks.agents.declaration import AnnouncedAgent, Declaration
from a2a_tasks.agents.switches import Switch
from a2a_tasks.agents.versions import AnnouncedVersion

SKILL = Skill("say", "Say", "Says it", ["say"])
CONVERSATIONS = [f"conversation {number}" for number in range(10_000)]


class Own(Agent, abstract=True):
    """The agent in the code of this process."""

    slug, name, description, skills = "here", "Here", "Is here.", [SKILL]

    def run(self, turn: Turn) -> str:
        """Answer anything."""
        return turn.text


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start without agents, and leave those of the host as they were."""
    monkeypatch.setattr(registry, "_found", {})
    yield
    versions.put({})
    switches.put({})


def announce(*names: str, dead: tuple[str, ...] = ()) -> None:
    """Let an environment have these versions, the oldest first."""
    known = [
        AnnouncedVersion(
            AnnouncedAgent(
                Declaration(
                    slug="here",
                    name="Here",
                    description="Is here.",
                    version=name,
                    skills=(SKILL,),
                    default_input_modes=("text/plain",),
                    default_output_modes=("text/plain",),
                ),
                "elsewhere",
            ),
            name not in dead,
        )
        for name in names
    ]
    versions.put({"here": known})


def own() -> None:
    """Have the agent in the code of this process, too: version 1.0.0."""
    registry.register(Own)


def serving() -> str:
    """The version that serves; empty = none."""
    found = registry.find("here")
    return found.version if found else ""


def test_an_announced_agent_is_one_of_the_host() -> None:
    announce("2.0")
    assert [agent.slug for agent in registry.agents()] == ["here"]
    assert registry.slugs() == ["here"]
    assert registry.list_own() == []
    assert registry.find_own("here") is None
    assert registry.queues_in_use() == {"here@2.0"}


def test_the_oldest_version_that_is_alive_serves_until_an_operator_chooses() -> None:
    announce("1.0", "2.0")
    assert serving() == "1.0"
    announce("1.0", "2.0", dead=("1.0",))
    assert serving() == "2.0"
    switches.put({"here": Switch(version="1.0")})
    assert serving() == "1.0"


def test_without_a_worker_the_newest_version_keeps_its_card() -> None:
    announce("1.0", "2.0", dead=("1.0", "2.0"))
    assert serving() == "2.0"


def test_the_code_of_this_process_serves_until_an_operator_chooses() -> None:
    own()
    announce("2.0")
    assert serving() == "1.0.0"
    switches.put({"here": Switch(version="2.0")})
    assert serving() == "2.0"
    switches.put({"here": Switch(version="1.0.0")})
    assert serving() == "1.0.0"


def test_a_chosen_version_that_was_removed_is_as_if_none_was_chosen() -> None:
    announce("2.0")
    switches.put({"here": Switch(version="1.0")})
    assert serving() == "2.0"


def test_an_agent_that_is_off_is_off_in_all_versions() -> None:
    announce("1.0")
    switches.put({"here": Switch(state="off")})
    assert registry.find("here") is None
    assert registry.agents() == []
    hosted = registry.find_hosted("here")
    assert hosted is not None
    assert hosted.version == "1.0"


def chosen(percent: float) -> set[str]:
    """The conversations that a canary of this share gets."""
    switches.put({"here": Switch(version="1.0", canary="2.0", canary_percent=percent)})
    found = {one: registry.choose("here", one) for one in CONVERSATIONS}
    return {one for one, agent in found.items() if agent and agent.version == "2.0"}


def test_a_canary_gets_its_share_of_new_conversations() -> None:
    announce("1.0", "2.0")
    assert len(chosen(10)) / len(CONVERSATIONS) == pytest.approx(0.10, abs=0.02)
    assert chosen(0) == set()
    assert chosen(100) == set(CONVERSATIONS)


def test_a_larger_share_has_the_conversations_of_a_smaller_one() -> None:
    announce("1.0", "2.0")
    assert all(small <= large for small, large in pairwise(map(chosen, (1, 10, 50, 99))))


def test_a_canary_without_a_worker_gets_nothing() -> None:
    announce("1.0", "2.0", dead=("2.0",))
    assert chosen(100) == set()


def test_the_code_of_this_process_can_be_the_canary() -> None:
    own()
    announce("2.0")
    switches.put({"here": Switch(version="2.0", canary="1.0.0", canary_percent=100)})
    assert registry.choose("here", "any") is registry.find_own("here")
