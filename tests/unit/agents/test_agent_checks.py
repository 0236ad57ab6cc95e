"""Every system check of agents: the mistake that raises it, and that it tells what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 - Django's own name

import a2a_tasks
from a2a_tasks import checks
from a2a_tasks.agents import Agent, Skill, Turn, registry

SKILL = Skill("shout", "Shout", "Repeats the text in capitals", tags=["text"])

#: What is no name of a header with text, and names of headers that carry credentials.
UNFIT = ["", "two words", "x-user:", "é", "x" * 65, "trace-bin", 7]
SECRET = [
    *("Authorization", "proxy-authorization", "Cookie", "set-cookie", "X-API-Key", "x-auth-user"),
    *("x-amzn-oidc-accesstoken", "x-forwarded-access-token", "x-goog-iap-jwt-assertion"),
    *("ocp-apim-subscription-key", "x-forwarded-client-cert", "x-password", "x-client-secret"),
]
#: Check id, what its message or hint must name, and the mistake.
MISTAKES: list[tuple[str, str, dict[str, Any]]] = [
    ("E002", "lower-case letters", {"slug": "No Slug"}),
    (
        "E002",
        "lower-case letters",
        {"slug": "no.dot"},
    ),  # Strands cannot call such a tool, and CrewAI renames it
    ("E002", "at most 63", {"slug": "x" * 64}),
    ("E003", "a name", {"name": ""}),
    ("E003", "a description", {"description": ""}),
    ("E004", "skills = [Skill(", {"skills": []}),
    ("E005", "same id", {"skills": [SKILL, SKILL]}),
    ("E006", "'text' is not a media type", {"default_input_modes": ["text"]}),
    ("E006", "'plain text'", {"default_output_modes": ["plain text"]}),
    ("E006", "'csv'", {"skills": [Skill("a", "A", "A", ["a"], input_modes=["csv"])]}),
    ("E006", "'svg'", {"skills": [Skill("a", "A", "A", ["a"], output_modes=["svg"])]}),
    ("E007", "no run method", {"run": Agent.run}),
    ("E008", "must not be empty", {"default_input_modes": []}),
    ("E008", "must not be empty", {"default_output_modes": []}),
    ("E009", "'resume', 'fail'", {"after_crash": "retry"}),
    ("E020", "'', 'process'", {"runs_in": "thread"}),
    ("E052", "'', 'context'", {"one_at_a_time": "task"}),
    ("E053", "'wait', 'fail'", {"when_version_is_gone": "retry"}),
    ("E063", "'cancel', 'go on'", {"on_hangup": "stop"}),
    ("E016", "'all', 'coalesced', 'states'", {"push_events": "none"}),
    ("E021", "'bearer', 'apiKey', 'basic', 'mutualTLS'", {"schemes": ["jwt"]}),
    ("E022", "'two words'", {"scopes": ["two words"]}),
    ("E022", "without spaces, quotes", {"skills": [Skill("a", "A", "A", ["a"], scopes=['"'])]}),
    ("E023", 'scopes = ["invoices"]', {"scopes": "invoices"}),
    ("E023", "are lists", {"schemes": "bearer"}),
    ("E040", "'own', 'tenant'", {"visibility": "everybody"}),
    ("E041", "'open', 'listed'", {"grants": "closed"}),
    ("E060", 'calls = ("billing",)', {"calls": "billing"}),
    ("W061", "are not here: nobody", {"calls": ["nobody"]}),
    ("E047", "rate: ", {"rate": "often"}),
    ("E061", 'forwarded_headers = ["x-user-id"]', {"forwarded_headers": "x-user-id"}),
    *(("E061", f"{name!r} is no name of", {"forwarded_headers": [name]}) for name in UNFIT),
    *(("E061", f"{name!r} is a header for cred", {"forwarded_headers": [name]}) for name in SECRET),
    ("E045", "number 0 is a dict, no Skill", {"skills": [{"id": "a", "name": "A"}]}),
    ("E045", "a Skill is no list of skills", {"skills": SKILL}),
    ("E046", "test_agent_checks.py:", {"run": lambda self: "x"}),
    ("W020", "A2A_BASIC=1", {"schemes": ["basic"]}),
    ("W001", "requires all four", {"skills": [Skill("", "A", "A", ["a"])]}),
    ("W001", "requires all four", {"skills": [Skill("a", "", "A", ["a"])]}),
    ("W001", "requires all four", {"skills": [Skill("a", "A", "", ["a"])]}),
    ("W001", "requires all four", {"skills": [Skill("a", "A", "A")]}),
]


def answer(agent: Agent, turn: Turn) -> str:
    """Answer anything."""
    return turn.text


def made(called: str = "Mistaken", /, **attributes: Any) -> type[Agent]:
    """An agent class that is in order but for these attributes."""
    good = {"name": "Good", "description": "Good.", "skills": [SKILL], "run": answer}
    return type(called, (Agent,), {**good, "__module__": __name__, **attributes})


def told(message: CheckMessage) -> str:
    """All that a reader of `manage.py check` gets to see."""
    return f"{message.msg}\n{message.hint or ''}"


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start without agents, and leave those of the host as they were."""
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setattr(registry, "_clashes", [])
    return iter([None])


class TestChecks:
    @pytest.mark.parametrize(("check", "naming", "attributes"), MISTAKES)
    def test_each_mistake_raises_its_check_and_no_other(
        self, check: str, naming: str, attributes: dict[str, Any]
    ) -> None:
        registry.register(made(**attributes))
        (message,) = checks.check_agents()
        assert message.id == f"a2a_tasks.{check}"
        assert isinstance(message, Warning if check.startswith("W") else Error)
        assert naming in told(message)
        assert message.obj == f"{__name__}.Mistaken"

    def test_two_agents_with_one_slug_are_told_by_name(self) -> None:
        registry.register(made("First", slug="same"))
        registry.register(made("Second", slug="same"))
        (message,) = checks.check_agents()
        assert message.id == "a2a_tasks.E001"
        assert f"{__name__}.First and {__name__}.Second" in message.msg
        assert message.hint

    def test_an_agent_met_twice_is_no_clash(self) -> None:
        agent = made()
        registry.register(agent)
        registry.register(agent)
        assert checks.check_agents() == []

    def test_several_mistakes_are_told_at_once(self) -> None:
        found = made(slug="?", name="", skills=[], default_input_modes=[])().check()
        assert [message.id for message in found] == [
            f"a2a_tasks.{check}" for check in ("E002", "E003", "E004", "E008")
        ]

    def test_an_agent_in_order_raises_none(self) -> None:
        modes = ["text/*", "*/*", "application/vnd.api+json", "text/plain; charset=utf-8"]
        assert list(made(default_input_modes=modes, default_output_modes=modes)().check()) == []

    def test_an_agent_may_add_checks_of_its_own(self) -> None:
        own = Error("no key", id="weather.E001")

        def check(self: Agent) -> Iterator[CheckMessage]:
            yield from Agent.check(self)
            yield own

        registry.register(made(check=check))
        assert checks.check_agents() == [own]

    def test_every_check_of_agents_has_a_mistake_here(self) -> None:
        sources = Path(a2a_tasks.__file__).parent.glob("agents/*.py")
        ids = {
            found
            for path in sources
            for found in re.findall(r'"a2a_tasks\.(\w\d+)"', path.read_text())
        }
        assert ids == {check for check, _, _ in MISTAKES} | {"E001"}


class TestSlug:
    @pytest.mark.parametrize(
        ("name", "slug"),
        [
            ("Shouter", "shouter"),
            ("WeatherReport", "weather-report"),
            ("WeatherAgent", "weather"),
            ("Http2Agent", "http2"),
        ],
    )
    def test_comes_from_the_class_name(self, name: str, slug: str) -> None:
        assert made(name).slug == slug
