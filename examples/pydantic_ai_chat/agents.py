"""An agent of pydantic-ai, hosted by one call. CHAT_MODEL names a model of a provider; without it, CHAT_URL is asked."""

import os
import random

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from a2a_frameworks import host
from a2a_tasks.agents import Skill

URL = os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1")
chat = Agent(
    os.environ.get("CHAT_MODEL")
    or OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=URL, api_key="none")),
    instructions="Be brief.",
    output_type=[str, DeferredToolRequests],
    defer_model_check=True,
)


@chat.tool_plain
def roll_dice(sides: int = 6) -> int:
    """Roll a die."""
    return random.randint(1, sides)  # noqa: S311 - a game


@chat.tool_plain(requires_approval=True)
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}: {text}"


SKILLS = [Skill("chat", "Chat", "Talks, rolls dice, and sends mail if you allow it", tags=["chat"])]
host(chat, slug="chat", description="Talks with you.", skills=SKILLS)
