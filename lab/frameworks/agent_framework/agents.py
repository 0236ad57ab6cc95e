"""An agent of the Agent Framework, hosted by one call. CHAT_URL is a server that speaks OpenAI's protocol."""

import os

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

from a2a_frameworks import host
from a2a_tasks.agents import Skill
from lab.frameworks.tools import add, halve, pay

client = AsyncOpenAI(
    base_url=os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
    max_retries=0,
)
chat = Agent(
    OpenAIChatCompletionClient(os.environ.get("CHAT_MODEL", "scripted"), async_client=client),
    "Be brief.",
    name="Chat",
    tools=[
        tool(add, approval_mode="never_require"),
        tool(halve, approval_mode="never_require"),
        tool(pay, approval_mode="always_require"),
    ],
)

SKILLS = [Skill("chat", "Chat", "Talks, adds, and pays if you allow it", tags=["chat"])]
host(chat, slug="agent-framework-chat", description="Talks with you.", skills=SKILLS)
