"""The frameworks whose agents the host runs, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from a2a_tasks.agents import Agent

__all__ = ["CALLABLE", "FRAMEWORKS", "METHODS", "Framework", "find_install_line"]


@dataclass(frozen=True)
class Framework:
    """A framework and its adapter."""

    #: The package as Python imports it.
    package: str
    #: The package as pip installs it.
    requirement: str
    #: The class of its agents, wherever in the package it is.
    kind: str
    #: Module and class of the adapter, which is imported when it is needed.
    adapter: str
    #: The adapter's attribute for the agent.
    attribute: str

    def makes(self, thing: Any) -> bool:
        """Return whether the framework makes such an agent. The classes of the object tell, so nothing is imported."""
        return any(
            base.__name__ == self.kind and f"{base.__module__}.".startswith(f"{self.package}.")
            for base in type(thing).__mro__
        )

    def load(self) -> type[Agent]:
        """Import the adapter, and return its class."""
        module, _, name = self.adapter.partition(":")
        found: type[Agent] = getattr(import_module(module), name)
        return found


FRAMEWORKS = (
    Framework(
        package="a2a",
        requirement="a2a-sdk>=1.3,<2",
        kind="AgentExecutor",
        adapter="a2a_tasks.frameworks.executor:ExecutorAgent",
        attribute="executor",
    ),
    Framework(
        package="pydantic_ai",
        requirement="pydantic-ai-slim[openai]>=2.68,<3",
        kind="AbstractAgent",
        adapter="a2a_tasks.frameworks.pydantic_ai:PydanticAIAgent",
        attribute="agent",
    ),
    Framework(
        package="agents",
        requirement="openai-agents>=0.24,<0.25",
        kind="Agent",
        adapter="a2a_tasks.frameworks.openai_agents:OpenAIAgentsAgent",
        attribute="agent",
    ),
    Framework(
        package="langgraph",
        requirement="langgraph>=1.2.22,<2",
        kind="Pregel",
        adapter="a2a_tasks.frameworks.langgraph:LangGraphAgent",
        attribute="graph",
    ),
    Framework(
        package="agent_framework",
        requirement="agent-framework-core>=1.23,<2",
        kind="RawAgent",
        adapter="a2a_tasks.frameworks.agent_framework:AgentFrameworkAgent",
        attribute="agent",
    ),
    Framework(
        package="strands",
        requirement="strands-agents>=1.62,<2",
        kind="Agent",
        adapter="a2a_tasks.frameworks.strands:StrandsAgent",
        attribute="agent",
    ),
    Framework(
        package="google.adk",
        requirement="google-adk>=2.13,<3",
        kind="BaseAgent",
        adapter="a2a_tasks.frameworks.adk:AdkAgent",
        attribute="agent",
    ),
    Framework(
        package="crewai",
        requirement="crewai>=1.15.30,<2",
        kind="Crew",
        adapter="a2a_tasks.frameworks.crewai:CrewAgent",
        attribute="crew",
    ),
)

#: Methods of runnables, the best first.
METHODS = ("astream", "ainvoke", "invoke")
#: The adapter of functions and runnables.
CALLABLE = Framework(
    package="",
    requirement="",
    kind="",
    adapter="a2a_tasks.frameworks.callable:CallableAgent",
    attribute="function",
)


def find_install_line(package: str | None) -> str:
    """Return the command that installs a framework; empty = it is there, or no framework."""
    for framework in FRAMEWORKS:
        names = (framework.package, framework.package.partition(".")[0])
        if package in names and not _is_installed(framework.package):
            return f"pip install '{framework.requirement}'"
    return ""


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # there is not even the package around it
        return False
