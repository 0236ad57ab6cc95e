"""A graph of LangGraph, hosted by one call. CHAT_MODEL names a model of OpenAI; without it, the server at CHAT_URL answers."""

import os
import random
from collections.abc import Callable
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from a2a_frameworks import host
from a2a_tasks.agents import Skill


def roll_dice(sides: int = 6) -> int:
    """Roll a die."""
    return random.randint(1, sides)  # noqa: S311 - a game


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    agreed = interrupt(f"May I send {text!r} to {to}?", response_schema=bool)
    return f"sent to {to}: {text}" if agreed else "not sent"


TOOLS: list[Callable[..., Any]] = [roll_dice, send_mail]
NAME = os.environ.get("CHAT_MODEL")
URL = os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1")
model = ChatOpenAI(
    model=NAME or "scripted",
    base_url=None if NAME else URL,
    api_key=lambda: os.environ.get("OPENAI_API_KEY", "none"),
    stream_usage=True,
)


async def speak(state: MessagesState) -> MessagesState:
    """Ask the model."""
    return {"messages": [await model.bind_tools(TOOLS).ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node(speak).add_node("tools", ToolNode(TOOLS))
graph.add_edge(START, "speak").add_edge("tools", "speak")
graph.add_conditional_edges("speak", tools_condition)

SKILLS = [Skill("chat", "Chat", "Talks, rolls dice, and sends mail if you allow it", tags=["chat"])]
host(graph.compile(), slug="graph-chat", description="Talks with you.", skills=SKILLS)
