"""The agent. CHAT_URL is its model."""

from __future__ import annotations

import os

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from a2a_frameworks import host
from a2a_tasks.agents import Skill
from tests.journeys.chat_app.tools import hold, note, pay

provider = OpenAIProvider(base_url=os.environ["CHAT_URL"], api_key="none")
chat = Agent(
    OpenAIChatModel("scripted", provider=provider),
    output_type=[str, DeferredToolRequests],
    tools=[note, hold],
)
chat.tool_plain(requires_approval=True)(pay)

SKILLS = [Skill("chat", "Chat", "Does as the prompt says.", tags=["test"])]
host(chat, slug="chat", skills=SKILLS, queue="chat")
