"""The graph of LangGraph: a model, and a task for each call of a tool."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt

from lab.framework_kills.host_app import tools

URL: dict[str, Any] = {"base_url": os.environ["CHAT_URL"], "api_key": "none"}
model = ChatOpenAI(model="scripted", stream_usage=True, **URL)


def pay(text: str) -> str:
    """Pay, if the client agrees."""
    return tools.pay(text) if interrupt(f"May I pay {text}?") == "yes" else "not paid"


TOOLS = [tools.note, tools.look, pay]


async def speak(state: MessagesState) -> Any:
    """Ask the model."""
    return {"messages": [await model.bind_tools(TOOLS).ainvoke(state["messages"])]}


def call_tools(state: MessagesState) -> Any:
    """Let each call of a tool be a task of its own."""
    (*_, last) = state["messages"]
    assert isinstance(last, AIMessage)
    return [Send("tools", [call]) for call in last.tool_calls] or END


graph = StateGraph(MessagesState)
graph.add_node(speak).add_node("tools", ToolNode(TOOLS))
graph.add_edge(START, "speak").add_edge("tools", "speak")
graph.add_conditional_edges("speak", call_tools, ["tools", END])
agent = graph.compile()
