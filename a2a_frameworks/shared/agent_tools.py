"""Agents of the host as tools of a framework (`tools_for`). A call of such a tool is a durable call of the turn, and no step.

A call is named by the id that it has in the answer of the model, which every attempt gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any

from a2a_frameworks.shared.call_ids import name_step
from a2a_frameworks.shared.output import EmissionQueue
from a2a_tasks.agents import Agent, CallAnswer, CallRefused, Turn, registry
from a2a_tasks.agents.calls import MAX_LENGTH
from a2a_tasks.protocol.jsontext import write

__all__ = ["CALLS", "AgentTool", "ToolCalls", "ToolError", "find_agent_tool", "make_tools", "mark"]

#: Longest name of a tool that the servers of models take.
MAX_TOOL_NAME = 64
#: The member of a framework's tool that says which agent it calls.
MEMBER = "a2a_agent_tool"


class ToolError(Exception):
    """The host refused a call, or the called task has not succeeded; the model reads why."""


@dataclass(frozen=True)
class ToolCalls:
    """The calls of agents in one run, or one of them."""

    turn: Turn
    output: EmissionQueue
    #: The id of the call, and the same with what tells it apart in the turn; empty = the tool gives them.
    id: str = ""
    key: str = ""
    #: The host's context. A task that begins in the framework's would be taken for a part of this run.
    context: Context = field(default_factory=copy_context)

    async def call(self, slug: str, message: str, id_: str, key: str) -> str:
        """Call an agent, and return its answer as a model reads it. Raises ToolError."""
        id_, key = self.id or id_, self.key or key
        if not key:
            number = self.output.number_call(id_)
            key = f"{id_}#{number}" if number > 1 else id_
        name = name_step(f"call {slug}:{key}", MAX_LENGTH)
        refusal = name_step(f"refused {slug}:{key}")
        words = ""

        async def tell() -> str:
            return words

        # A refusal stays one, since the model may have read it. This look takes no step.
        if refusal in self.turn._journal.results:  # noqa: SLF001
            raise ToolError(await self.turn.step(refusal, tell))
        try:
            work = self._make(slug, message, name)
            answer = await asyncio.create_task(work, context=self.context.copy())
        except CallRefused as refused:
            words = str(refused)
            raise ToolError(await self.turn.step(refusal, tell)) from refused
        self.output.note_call(id_, slug, answer.task_id)
        return _read(answer)

    async def _make(self, slug: str, message: str, name: str) -> CallAnswer:
        return await self.turn.call(slug, message, name=name)


def _read(answer: CallAnswer) -> str:
    """Return an answer as a model reads it. Raises ToolError."""
    if answer.failed:
        said = f": {answer.text}" if answer.text else "."
        raise ToolError(f"The task of {answer.agent} is {answer.state.word}{said}")
    if answer.text or answer.data is None:
        return answer.text
    return write(answer.data).decode()


#: The calls of the run that is at work here.
CALLS: ContextVar[ToolCalls | None] = ContextVar("calls", default=None)


@dataclass(frozen=True)
class AgentTool:
    """An agent as a tool that takes a text, `message`."""

    slug: str

    @property
    def name(self) -> str:
        """Return the slug as a name that all servers of models take."""
        return self.slug.replace("-", "_")[:MAX_TOOL_NAME]

    @property
    def description(self) -> str:
        """Return the description in the card, if the agent is known already."""
        known: Any = registry.find_own(self.slug) or registry.find_hosted(self.slug)
        agent = known or next((one for one in _list_classes(Agent) if one.slug == self.slug), None)
        return str(agent.description) if agent else f"Gives work to the agent {self.slug}."

    async def call(self, message: str, id_: str = "", key: str = "") -> str:
        """Call the agent; `id_` is that of the call in the model's answer, `key` tells it apart in the turn.

        Raises ToolError, and RuntimeError outside a turn.
        """
        calls = CALLS.get()
        if calls is None:
            raise RuntimeError(f"the agent {self.slug} can be called in a turn of the host only")
        return await calls.call(self.slug, message, id_, key)


def _list_classes(cls: type[Agent]) -> Iterator[type[Agent]]:
    """Yield the classes of agents, which the host finds after their modules are loaded."""
    for below in cls.__subclasses__():
        yield below
        yield from _list_classes(below)


def make_tools(slugs: tuple[str, ...]) -> list[AgentTool]:
    """Return the tools for some agents. Raises ValueError if there is none, or two would have one name."""
    made = [AgentTool(slug) for slug in slugs]
    if not made or len({tool.name for tool in made}) < len(made):
        raise ValueError(f"tools_for needs agents, each with a name of its own: {slugs}")
    return made


def mark(made: Any, tool: AgentTool) -> None:
    """Note in a framework's tool which agent it calls."""
    vars(made)[MEMBER] = tool


def find_agent_tool(made: Any) -> AgentTool | None:
    """Return which agent a framework's tool calls; None = it is another tool."""
    found: AgentTool | None = getattr(made, MEMBER, None)
    return found
