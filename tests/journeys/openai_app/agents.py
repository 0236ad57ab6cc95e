"""The agent. CHAT_URL is its model."""

from __future__ import annotations

import os

from agents import Agent, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI

from a2a_tasks.agents import Skill
from a2a_tasks.frameworks import host
from tests.journeys.chat_app.tools import hold, note, pay

client = AsyncOpenAI(base_url=os.environ["CHAT_URL"], api_key="none")
chat = Agent(
    "Chat",
    model=OpenAIChatCompletionsModel("scripted", openai_client=client),
    tools=[function_tool(note), function_tool(hold), function_tool(pay, needs_approval=True)],
)

SKILLS = [Skill("chat", "Chat", "Does as the prompt says.", tags=["test"])]
host(chat, slug="chat", skills=SKILLS, queue="chat")
