"""The agent of pydantic-ai."""

from __future__ import annotations

import os

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from lab.framework_kills.host_app.tools import look, note, pay

provider = OpenAIProvider(base_url=os.environ["CHAT_URL"], api_key="none")
agent = Agent(
    OpenAIChatModel("scripted", provider=provider),
    output_type=[str, DeferredToolRequests],
    tools=[note, look],
)
agent.tool_plain(requires_approval=True)(pay)
