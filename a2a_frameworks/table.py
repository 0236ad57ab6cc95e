"""The frameworks whose agents this package adapts, one row each: its entry point of the group `a2a_host.frameworks`."""

from __future__ import annotations

from a2a_tasks.agents.frameworks import Framework

__all__ = ["CALLABLE", "FRAMEWORKS", "METHODS"]

FRAMEWORKS = (
    Framework(
        package="a2a",
        requirement="a2a-sdk>=1.3,<2",
        kind="AgentExecutor",
        adapter="a2a_frameworks.executor:ExecutorAgent",
        attribute="executor",
    ),
    Framework(
        package="pydantic_ai",
        requirement="pydantic-ai-slim[openai]>=2.68,<3",
        kind="AbstractAgent",
        adapter="a2a_frameworks.pydantic_ai:PydanticAIAgent",
        attribute="agent",
    ),
    Framework(
        package="agents",
        requirement="openai-agents>=0.24,<0.25",
        kind="Agent",
        adapter="a2a_frameworks.openai_agents:OpenAIAgentsAgent",
        attribute="agent",
    ),
    Framework(
        package="langgraph",
        requirement="langgraph>=1.2.22,<2",
        kind="Pregel",
        adapter="a2a_frameworks.langgraph:LangGraphAgent",
        attribute="graph",
    ),
    Framework(
        package="agent_framework",
        requirement="agent-framework-core>=1.23,<2",
        kind="RawAgent",
        adapter="a2a_frameworks.agent_framework:AgentFrameworkAgent",
        attribute="agent",
    ),
    Framework(
        package="strands",
        requirement="strands-agents>=1.62,<2",
        kind="Agent",
        adapter="a2a_frameworks.strands:StrandsAgent",
        attribute="agent",
    ),
    Framework(
        package="google.adk",
        requirement="google-adk>=2.13,<3",
        kind="BaseAgent",
        adapter="a2a_frameworks.adk:AdkAgent",
        attribute="agent",
    ),
    Framework(
        package="crewai",
        requirement="crewai>=1.15.30,<2",
        kind="Crew",
        adapter="a2a_frameworks.crewai:CrewAgent",
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
    adapter="a2a_frameworks.callable:CallableAgent",
    attribute="function",
)
