"""An agent of the OpenAI Agents SDK, hosted by one call. CHAT_MODEL names a model of OpenAI; without it, CHAT_URL is asked."""

import os
import random

from agents import Agent, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI

from a2a_frameworks import host
from a2a_tasks.agents import Skill

URL = os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1")


@function_tool
def roll_dice(sides: int = 6) -> int:
    """Roll a die."""
    return random.randint(1, sides)  # noqa: S311 - a game


@function_tool(needs_approval=True)
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}: {text}"


client = AsyncOpenAI(base_url=URL, api_key="none")
chat = Agent(
    "Chat",
    instructions="Be brief.",
    model=os.environ.get("CHAT_MODEL") or OpenAIChatCompletionsModel("scripted", client),
    tools=[roll_dice, send_mail],
)

SKILLS = [Skill("chat", "Chat", "Talks, rolls dice, and sends mail if you allow it", tags=["chat"])]
host(chat, slug="openai-chat", description="Talks with you.", skills=SKILLS)
