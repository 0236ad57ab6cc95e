"""The graph. CHAT_URL is its model."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt

from a2a_tasks.agents import Skill
from a2a_tasks.frameworks import host
from tests.journeys.chat_app import tools

URL: dict[str, Any] = {"base_url": os.environ["CHAT_URL"], "api_key": "none"}
model = ChatOpenAI(model="scripted", stream_usage=True, **URL)


def pay(amount: int) -> str:
    """Pay, if the client agrees."""
    agreed = interrupt(f"May I pay {amount}?", response_schema=bool)
    return tools.pay(amount) if agreed else "not paid"


async def speak(state: MessagesState) -> Any:
    """Ask the model."""
    bound = model.bind_tools([tools.note, tools.hold, pay])
    return {"messages": [await bound.ainvoke(state["messages"])]}


def call_tools(state: MessagesState) -> Any:
    """Let each call of a tool be a task of its own."""
    (*_, last) = state["messages"]
    assert isinstance(last, AIMessage)
    return [Send("tools", [call]) for call in last.tool_calls] or END


graph = StateGraph(MessagesState)
graph.add_node(speak).add_node("tools", ToolNode([tools.note, tools.hold, pay]))
graph.add_edge(START, "speak").add_edge("tools", "speak")
graph.add_conditional_edges("speak", call_tools, ["tools", END])

SKILLS = [Skill("chat", "Chat", "Does as the prompt says.", tags=["test"])]
host(graph.compile(), slug="chat", skills=SKILLS, queue="chat")
