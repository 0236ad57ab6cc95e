"""`host` finds the adapter by the type of the thing, imports no framework for that, and says what it does not take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from django.core.exceptions import ImproperlyConfigured

from a2a_frameworks import host
from a2a_frameworks.callable import CallableAgent
from a2a_frameworks.executor import ExecutorAgent
from a2a_frameworks.table import FRAMEWORKS
from a2a_tasks.agents import Skill, frameworks, registry
from a2a_tasks.agents.frameworks import Framework
from tests import ROOT

SKILLS = [Skill("do", "Do", "Does something.", tags=["test"])]
MISSING = Framework("no_such", "no-such-sdk>=2", "Runner", "", "runner")


class Doing(AgentExecutor):
    """Does something.

    And more.
    """

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do nothing."""

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do nothing."""


async def say(text: str) -> str:
    """Say it again."""
    return text


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Forget the agents of a test."""
    before = dict(registry._found)
    yield
    for slug in registry._found.keys() - before.keys():
        type(registry._found.pop(slug)).abstract = True


class TestHosting:
    def test_an_executor_gets_its_adapter(self) -> None:
        executor = Doing()
        made = host(executor, slug="doing-it", skills=SKILLS)
        agent = registry.find_hosted("doing-it")
        assert issubclass(made, ExecutorAgent)
        assert isinstance(agent, made)
        assert agent.build(None) is executor  # type: ignore[arg-type]
        assert (agent.name, agent.description) == ("Doing it", "Does something.")
        assert (made.__module__, made.__qualname__) == (__name__, "DoingIt")
        assert list(agent.check()) == []

    def test_a_function_gets_its_adapter(self) -> None:
        made = host(say, slug="say", name="Sayer", skills=SKILLS, streaming=False)
        assert issubclass(made, CallableAgent)
        assert (made.name, made.description, made.streaming) == ("Sayer", "Say it again.", False)

    def test_a_thing_without_a_docstring_is_described_by_its_name(self) -> None:
        assert host(lambda text: text, slug="say", skills=SKILLS).description == "Say"

    def test_an_attribute_that_no_agent_has_is_a_mistake(self) -> None:
        with pytest.raises(TypeError, match="CallableAgent has no attribute streams"):
            host(say, slug="say", skills=SKILLS, streams=True)

    @pytest.mark.parametrize(
        ("thing", "named"),
        [(7, "7"), ("text", "'text'"), (Doing, "the class Doing"), (None, "None")],
    )
    def test_an_unknown_thing_is_told_what_is_supported(self, thing: Any, named: str) -> None:
        with pytest.raises(TypeError) as raised:
            host(thing, slug="x", skills=SKILLS)
        assert str(raised.value) == (
            f"{named} cannot be hosted. Supported are instances of a2a.AgentExecutor, pydantic_ai.AbstractAgent, "
            "agents.Agent, langgraph.Pregel, agent_framework.RawAgent, strands.Agent, google.adk.BaseAgent, "
            "crewai.Crew; functions; and objects with astream, ainvoke, invoke."
        )

    def test_every_framework_has_an_adapter_with_its_attribute(self) -> None:
        for framework in FRAMEWORKS:
            adapter: Any = framework.load()
            assert (adapter.framework, adapter.attribute) == (
                framework.package,
                framework.attribute,
            )


class TestMissing:
    @pytest.fixture(autouse=True)
    def row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One framework more, which is not installed."""
        monkeypatch.setattr(frameworks, "list_frameworks", lambda: (*FRAMEWORKS, MISSING))

    def test_a_check_names_the_line_that_installs_a_framework(self) -> None:
        made = host(say, slug="say", skills=SKILLS, framework="no_such")
        (fault,) = made().check()
        assert (fault.id, fault.hint) == ("a2a_tasks.E050", "pip install 'no-such-sdk>=2'")
        assert fault.msg == "the package no_such is not installed"

    def test_so_does_the_start_when_an_app_imports_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def import_apps(name: str) -> None:
            raise ModuleNotFoundError("No module named 'no_such.deep'", name="no_such.deep")

        monkeypatch.setattr(registry, "autodiscover_modules", import_apps)
        with pytest.raises(ImproperlyConfigured, match="pip install 'no-such-sdk>=2'"):
            registry.discover()

    def test_any_other_missing_module_is_the_apps_own_mistake(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def import_apps(name: str) -> None:
            raise ModuleNotFoundError("No module named 'mine'", name="mine")

        monkeypatch.setattr(registry, "autodiscover_modules", import_apps)
        with pytest.raises(ModuleNotFoundError, match="mine"):
            registry.discover()


@pytest.mark.parametrize(
    ("hint", "executor"),
    [
        ("executor is the class Doing, not an executor", Doing),
        ("executor needs the methods execute and cancel", None),
    ],
)
def test_a_check_finds_what_is_no_executor(hint: str, executor: Any) -> None:
    class Agent(ExecutorAgent, abstract=True):
        pass

    Agent.executor = executor
    (fault,) = [check for check in Agent().check() if check.id == "a2a_tasks.E051"]
    assert fault.msg == hint


def test_the_host_imports_no_framework() -> None:
    code = (
        "import sys, django; django.setup(); import a2a_project.asgi, a2a_grpc.server, "
        "a2a_frameworks.executor, a2a_frameworks.callable, a2a_frameworks.pydantic_ai, "
        "a2a_frameworks.openai_agents, a2a_frameworks.langgraph; "
        "print(sorted({m.partition('.')[0] for m in sys.modules} & set(sys.argv[1:])), "
        "[m for m in sys.modules if m.startswith('a2a.server')])"
    )
    frameworks = ["pydantic_ai", "langgraph", "langchain_core", "agents", "openai", "pydantic"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "a2a_project.settings"}
    shown = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *frameworks],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert shown.stdout.splitlines()[-1] == "[] []"


def test_a_host_without_redis_and_forms_loads_no_library_for_them(tmp_path: Path) -> None:
    code = (
        "import sys, django; django.setup(); import a2a_project.asgi; "
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'redis', 'jsonschema'}))"
    )
    environment = {key: value for key, value in os.environ.items() if "REDIS" not in key}
    environment |= {"DJANGO_SETTINGS_MODULE": "a2a_project.settings", "VAR_DIR": str(tmp_path)}
    shown = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert shown.stdout.splitlines()[-1] == "[]"
