"""The agent. CHAT_URL is its model, CHAT_LEDGER the file that its tools write to."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from a2a_tasks.agents import Skill
from a2a_tasks.frameworks import host

LEDGER = Path(os.environ["CHAT_LEDGER"])
provider = OpenAIProvider(base_url=os.environ["CHAT_URL"], api_key="none")
chat = Agent(
    OpenAIChatModel("scripted", provider=provider), output_type=[str, DeferredToolRequests]
)


@chat.tool_plain
def note(text: str) -> str:
    """Write a line."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{text}\n")
    return f"noted {text}"


def is_new(text: str) -> bool:
    """Write a line, and tell whether it is the first of its kind."""
    known = LEDGER.read_text().split()
    note(text)
    return text not in known


@chat.tool_plain
async def hold(text: str) -> str:
    """Write a line; the first time, wait for the end of the process."""
    if await asyncio.to_thread(is_new, text):
        await asyncio.Event().wait()
    return f"held {text}"


@chat.tool_plain(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    note(f"paid-{amount}")
    return f"paid {amount}"


SKILLS = [Skill("chat", "Chat", "Does as the prompt says.", tags=["test"])]
host(chat, slug="chat", skills=SKILLS, queue="chat")
