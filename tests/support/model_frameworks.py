"""The frameworks that ask models, each with agents that do the same: they ask the model server, and have these tools."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from agents import Agent as OpenAIAgent
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel, function_tool
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import DeferredToolRequests, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponses
from pydantic_ai.providers.openai import OpenAIProvider

from tests.model_server import ModelServer
from tests.support.frameworks import CLIENTS

__all__ = [
    "FRAMEWORKS",
    "LANGGRAPH",
    "OPENAI_AGENTS",
    "PYDANTIC_AI",
    "RESPONSES",
    "City",
    "Ledger",
    "LangGraph",
    "ModelFramework",
    "OpenAIAgents",
    "PydanticAI",
]


class City(BaseModel):
    """What a structured output is about."""

    name: str
    people: int


class Ledger:
    """Tools that note their calls."""

    def __init__(self, refusal: type[Exception] = ValueError) -> None:
        self.calls: list[Any] = []
        self._refusal = refusal

    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.calls.append((a, b))
        return a + b

    def pay(self, amount: int) -> str:
        """Pay."""
        self.calls.append(amount)
        return f"paid {amount}"

    def refuse(self, a: int) -> str:
        """Refuse odd numbers, by an error that the model is told of."""
        self.calls.append(a)
        if a % 2:
            raise self._refusal("only even numbers")
        return "fine"

    def halve(self, a: int) -> str:
        """Return half of a surrogate pair, as `json.loads` makes it."""
        self.calls.append(a)
        return str(json.loads('"x\\ud83dy"')) * a

    def break_down(self) -> str:
        """Break."""
        self.calls.append("broken")
        raise KeyError("elsewhere")


class ModelFramework(ABC):
    """A framework."""

    name = ""
    #: The error of a tool that the model is told of.
    refusal: type[Exception] = ValueError
    #: The modules that a trace of an error of the model names.
    traced = ""
    #: What the example is, and the slug of its agent.
    example, slug = "", ""

    @abstractmethod
    def make(
        self,
        server: ModelServer,
        *tools: Callable[..., Any],
        approved: Sequence[Callable[..., Any]] = (),
        retries: int = 0,
    ) -> Any:
        """An agent with tools; those that are `approved` are called if the client agrees."""

    def __repr__(self) -> str:
        return self.name


class PydanticAI(ModelFramework):
    """pydantic-ai."""

    name, traced, refusal = "pydantic-ai", "pydantic_ai", ModelRetry
    example, slug = "pydantic_ai_chat", "chat"

    def __init__(self, kind: Any = OpenAIChatModel, name: str = name) -> None:
        self._kind, self.name = kind, name

    def model(self, server: ModelServer, retries: int = 0) -> Any:
        """The model of the server."""
        provider = OpenAIProvider(base_url=server.url, api_key="none")
        provider.client.max_retries = retries
        CLIENTS.append(provider.client)
        return self._kind("scripted", provider=provider)

    def make(
        self,
        server: ModelServer,
        *tools: Callable[..., Any],
        approved: Sequence[Callable[..., Any]] = (),
        retries: int = 0,
        **about: Any,
    ) -> PydanticAgent[Any, Any]:
        """An agent; `about` are its own members."""
        if approved:
            about["output_type"] = [str, DeferredToolRequests]
        agent = PydanticAgent(self.model(server, retries), tools=tools, **about)
        for tool in approved:
            agent.tool_plain(requires_approval=True)(tool)
        return agent


class OpenAIAgents(ModelFramework):
    """The OpenAI Agents SDK."""

    name, traced = "openai-agents", "openai_agents"
    example, slug = "openai_agents_chat", "openai-chat"

    def __init__(self, kind: Any = OpenAIChatCompletionsModel, name: str = name) -> None:
        self._kind, self.name = kind, name

    def model(self, server: ModelServer, name: str = "scripted", *, retries: int = 0) -> Any:
        """A model of the server."""
        client = AsyncOpenAI(base_url=server.url, api_key="none", max_retries=retries)
        CLIENTS.append(client)
        return self._kind(name, openai_client=client)

    def make(
        self,
        server: ModelServer,
        *tools: Callable[..., Any],
        approved: Sequence[Callable[..., Any]] = (),
        retries: int = 0,
        **about: Any,
    ) -> OpenAIAgent[Any]:
        """An agent; `about` are its own members."""
        made = [function_tool(tool) for tool in tools]
        made += [function_tool(tool, needs_approval=True) for tool in approved]
        given = {"model": self.model(server, retries=retries), "tools": made, **about}
        return OpenAIAgent("Helper", **given)


class LangGraph(ModelFramework):
    """LangGraph."""

    name, traced = "langgraph", "langchain"
    example, slug = "langgraph_chat", "graph-chat"

    def model(self, server: ModelServer, retries: int = 0) -> Any:
        """The model of the server."""
        about: dict[str, Any] = {"base_url": server.url, "api_key": "none", "stream_usage": True}
        # Clients of its own, which its test closes: the default ones are shared, and never closed.
        about |= {"http_client": httpx.Client(), "http_async_client": httpx.AsyncClient()}
        made = ChatOpenAI(model="scripted", max_retries=retries, **about)
        CLIENTS.extend([made.root_client, made.root_async_client])
        return made

    def make(
        self,
        server: ModelServer,
        *tools: Callable[..., Any],
        approved: Sequence[Callable[..., Any]] = (),
        retries: int = 0,
        **about: Any,
    ) -> Any:
        """A graph of a model and its tools; `about` is for its compilation."""
        model = self.model(server, retries)
        known = [*tools, *map(_ask_first, approved)]

        async def speak(state: MessagesState) -> Any:
            bound = model.bind_tools(known) if known else model
            return {"messages": [await bound.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak")
        if known:
            graph.add_node("tools", ToolNode(known, handle_tool_errors=(self.refusal,)))
            graph.add_conditional_edges("speak", _call_tools, ["tools", END])
            graph.add_edge("tools", "speak")
        return graph.compile(**about)


def _call_tools(state: MessagesState) -> Any:
    """Let each call of a tool be a task of its own."""
    (*_, last) = state["messages"]
    assert isinstance(last, AIMessage)
    return [Send("tools", [call]) for call in last.tool_calls] or END


def _ask_first(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The payment, which asks the client first."""

    def pay(amount: int) -> str:
        """Pay."""
        agreed = interrupt(f"May I call pay(amount={amount})?", response_schema=bool)
        return str(tool(amount)) if agreed else "not paid"

    return pay


PYDANTIC_AI, OPENAI_AGENTS, LANGGRAPH = PydanticAI(), OpenAIAgents(), LangGraph()
FRAMEWORKS = (PYDANTIC_AI, OPENAI_AGENTS, LANGGRAPH)
#: The same frameworks with OpenAI's newer protocol.
RESPONSES = (
    PydanticAI(PydanticResponses, "pydantic-ai-responses"),
    OpenAIAgents(OpenAIResponsesModel, "openai-agents-responses"),
)
