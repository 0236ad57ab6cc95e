"""An agent of Strands, hosted by one call. CHAT_URL is a server that speaks OpenAI's protocol."""

import os

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.vended_interventions.hitl import HumanInTheLoop

from a2a_frameworks import host
from a2a_tasks.agents import Skill
from lab.frameworks.tools import add, halve, pay

chat = Agent(
    OpenAIModel(
        client_args={
            "base_url": os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1"),
            "api_key": os.environ.get("OPENAI_API_KEY", "none"),
            "max_retries": 0,
        },
        model_id=os.environ.get("CHAT_MODEL", "scripted"),
    ),
    system_prompt="Be brief.",
    tools=[tool(add), tool(halve), tool(pay)],
    interventions=[HumanInTheLoop(allowed_tools=["add", "halve"])],
    callback_handler=None,
    retry_strategy=None,
)

SKILLS = [Skill("chat", "Chat", "Talks, adds, and pays if you allow it", tags=["chat"])]
host(chat, slug="strands-chat", description="Talks with you.", skills=SKILLS)
