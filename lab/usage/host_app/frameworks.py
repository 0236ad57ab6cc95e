"""The agents of frameworks."""

from __future__ import annotations

import os
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from a2a_frameworks import host
from a2a_tasks.agents import Skill

URL = os.environ["CHAT_URL"]
SKILLS = [Skill("ask", "Ask", "Asks the model as often as the prompt says.", tags=["test"])]


def look(text: str) -> str:
    """Look something up."""
    return f"found {text}"


model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=URL, api_key="none"))
host(Agent(model, tools=[look]), slug="pydantic-ai", skills=SKILLS)

about: dict[str, Any] = {"base_url": URL, "api_key": "none"}
chat = ChatOpenAI(model="scripted", stream_usage=True, **about).bind_tools([look])


async def speak(state: MessagesState) -> Any:
    """Ask the model."""
    return {"messages": [await chat.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node(speak).add_node("tools", ToolNode([look]))
graph.add_edge(START, "speak").add_edge("tools", "speak")
graph.add_conditional_edges("speak", tools_condition, {"tools": "tools", END: END})
host(graph.compile(), slug="langgraph", skills=SKILLS)
