"""`python chat_strands.py URL` where strands-agents and openai are installed: its model of OpenAI's API."""

from __future__ import annotations

from collections.abc import Sequence

from chat_talk import API, KEY, main
from strands import Agent
from strands.models.openai import OpenAIModel


async def say(before: Sequence[str], text: str) -> str:
    """The answer, which its agents always read as a stream."""
    model = OpenAIModel(client_args={"base_url": API, "api_key": KEY}, model_id="demo")
    history = [
        {"role": "assistant" if place % 2 else "user", "content": [{"text": each}]}
        for place, each in enumerate(before)
    ]
    agent = Agent(model=model, messages=history, callback_handler=None)
    found = await agent.invoke_async(text)
    return "".join(block["text"] for block in found.message["content"])


if __name__ == "__main__":
    main(say, say)
