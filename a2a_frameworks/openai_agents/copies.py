"""Copies of agents for one run, whose models and tools take steps. The author's objects do not change."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from agents import Agent, FunctionTool, Handoff, Model, RunConfig, RunContextWrapper, Tool
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner
from agents.tool import _FailureHandlingFunctionToolInvoker, invoke_function_tool
from agents.tool_context import ToolContext

from a2a_frameworks.openai_agents.model import StepModel, StepProvider
from a2a_frameworks.openai_agents.servers import ConnectedServers
from a2a_frameworks.openai_agents.steps import STEPS, Steps
from a2a_frameworks.shared.agent_tools import find_agent_tool

__all__ = ["RUNNER", "AgentCopies"]

Invoke = Callable[[ToolContext[Any], str], Awaitable[Any]]


class AgentCopies(Steps):
    """The copies for one run, and its steps."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.servers = ConnectedServers()
        #: Copies by the ids of agents and of copies.
        self._made: dict[int, Agent[Any]] = {}
        #: The agents, so that no other object gets their ids.
        self._kept: list[Agent[Any]] = []

    def copy_agent(self, agent: Agent[Any]) -> Agent[Any]:
        """Return the copy of an agent, with the agents that it hands over to or uses as tools."""
        if id(agent) in self._made:
            return self._made[id(agent)]
        made = copy.copy(agent)
        self._kept.append(agent)
        self._made[id(agent)] = self._made[id(made)] = made
        if isinstance(agent.model, Model):
            made.model = StepModel(agent.model, self)
        made.tools = [self._copy_tool(tool) for tool in agent.tools]
        made.handoffs = [
            self._copy_handoff(one) if isinstance(one, Handoff) else self.copy_agent(one)
            for one in agent.handoffs
        ]
        list_tools = made.get_mcp_tools

        async def get_mcp_tools(context: RunContextWrapper[Any]) -> list[Tool]:
            await self.servers.connect(agent.mcp_servers)
            return [self._copy_tool(tool) for tool in await list_tools(context)]

        vars(made)["get_mcp_tools"] = get_mcp_tools
        return made

    def _copy_tool(self, tool: Tool) -> Tool:
        if not isinstance(tool, FunctionTool):
            return tool
        made = copy.copy(tool)
        if tool._agent_instance is not None:  # noqa: SLF001 - states of runs name it
            made._agent_instance = self.copy_agent(tool._agent_instance)  # noqa: SLF001
        if agent := find_agent_tool(tool):
            made.description = agent.description
        made.on_invoke_tool = StepInvoker(made, self)
        made.timeout_seconds = None  # the step has the limit
        return made

    def _copy_handoff(self, handoff: Handoff[Any, Any]) -> Handoff[Any, Any]:
        made, invoke = copy.copy(handoff), handoff.on_invoke_handoff

        async def hand_over(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
            return self.copy_agent(await invoke(context, arguments))

        made.on_invoke_handoff = hand_over
        target = handoff._agent_ref and handoff._agent_ref()  # noqa: SLF001 - states of runs name it
        if isinstance(target, Agent):
            made._agent_ref = weakref.ref(self.copy_agent(target))  # noqa: SLF001
        return made

    def copy_config(self, config: RunConfig | dict[str, Any] | None) -> RunConfig:
        """Return the configuration of a run whose models are named."""
        made = config if isinstance(config, RunConfig) else RunConfig(**config or {})
        if isinstance(made.model_provider, StepProvider):
            return made
        model = StepModel(made.model, self) if isinstance(made.model, Model) else made.model
        return replace(
            made,
            model=model,
            model_provider=StepProvider(made.model_provider, self),
            tracing_disabled=made.tracing_disabled or not self._agent.exports_traces,
        )


class StepInvoker(_FailureHandlingFunctionToolInvoker):
    """The function of a tool, called in a step. The model is told of its errors within the step.

    The class is that of the SDK's own tools: policies of approval look at their arguments by it.
    """

    def __init__(self, tool: FunctionTool, steps: Steps) -> None:
        self._invoke, self._steps = tool.on_invoke_tool, steps
        # agents take steps of their own
        self._is_agent = tool._is_agent_tool or find_agent_tool(tool) is not None  # noqa: SLF001
        if isinstance(self._invoke, _FailureHandlingFunctionToolInvoker):
            self._invoke = copy.copy(self._invoke)
            handle = self._invoke._on_handled_error  # noqa: SLF001

            def note(*about: Any) -> None:
                handle(*about)
                steps.note_failure(about[-1])

            self._invoke._on_handled_error = note  # noqa: SLF001
        implementation = getattr(self._invoke, "_invoke_tool_impl", self._invoke)
        if tool.timeout_seconds is not None:
            self._invoke = _limit_time(tool, self._invoke, steps)
        super().__init__(implementation, lambda *_: None, function_tool=tool)

    def __agents_bind_function_tool__(self, function_tool: FunctionTool) -> StepInvoker:
        return self

    async def __call__(self, ctx: ToolContext[Any], input: str) -> Any:  # noqa: A002 - as in the SDK
        return await self._steps.invoke(self._invoke, ctx, input, is_agent=self._is_agent)


def _limit_time(tool: FunctionTool, invoke: Invoke, steps: Steps) -> Invoke:
    """Return the function of a tool with its time limit. After a timeout the model gets the SDK's own message."""
    limited = copy.copy(tool)
    limited.on_invoke_tool = invoke

    def tell(context: Any, fault: Exception) -> Any:
        steps.note_failure(context)
        return (tool.timeout_error_function or (lambda _, fault: str(fault)))(context, fault)

    async def invoke_in_time(context: ToolContext[Any], arguments: str) -> Any:
        return await invoke_function_tool(
            function_tool=limited, context=context, arguments=arguments
        )

    limited.timeout_error_function = tell
    return invoke_in_time


class StepRunner(AgentRunner):
    """The runner of the process. Runs within a turn's, such as those of agents that are tools, take steps as well."""

    def __init__(self, runner: AgentRunner) -> None:
        self._runner = runner

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:  # noqa: A002
        """Run an agent."""
        with _take_steps(starting_agent, options) as agent:
            return await self._runner.run(agent, input, **options)

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:  # noqa: A002
        """Run an agent in a thread of its own."""
        return self._runner.run_sync(starting_agent, input, **options)

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:  # noqa: A002
        """Run an agent, and give its events."""
        with _take_steps(starting_agent, options) as agent:
            return self._runner.run_streamed(agent, input, **options)


@contextmanager
def _take_steps(agent: Agent[Any], options: dict[str, Any]) -> Iterator[Agent[Any]]:
    """Give the agent of a run within a turn's, as a copy that takes steps; outside turns, the agent itself."""
    steps = STEPS.get()
    if not isinstance(steps, AgentCopies):
        yield agent
        return
    options["run_config"] = steps.copy_config(options.get("run_config"))
    with steps.enter_run(agent.name):
        yield steps.copy_agent(agent)


#: Engines of durability are meant to replace the runner of the process; this one acts in turns only.
RUNNER = StepRunner(get_default_agent_runner())
set_default_agent_runner(RUNNER)
