"""The agent of the OpenAI Agents SDK."""

from __future__ import annotations

import os

from agents import Agent, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI

from lab.framework_kills.host_app.tools import look, note, pay

client = AsyncOpenAI(base_url=os.environ["CHAT_URL"], api_key="none")
agent = Agent(
    "Chat",
    model=OpenAIChatCompletionsModel("scripted", openai_client=client),
    tools=[function_tool(note), function_tool(look), function_tool(pay, needs_approval=True)],
)
