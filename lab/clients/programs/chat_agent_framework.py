"""`python chat_agent_framework.py URL` where agent-framework-openai is installed: its client of chat completions."""

from __future__ import annotations

from collections.abc import Sequence

from agent_framework import Message
from agent_framework.openai import OpenAIChatCompletionClient
from chat_talk import API, KEY, main


def _prepare(before: Sequence[str], text: str) -> tuple[OpenAIChatCompletionClient, list[Message]]:
    messages = [
        Message("assistant" if place % 2 else "user", [each])
        for place, each in enumerate((*before, text))
    ]
    return OpenAIChatCompletionClient("demo", base_url=API, api_key=KEY), messages


async def say(before: Sequence[str], text: str) -> str:
    """The answer."""
    client, messages = _prepare(before, text)
    return str((await client.get_response(messages)).text)


async def stream(before: Sequence[str], text: str) -> str:
    """The answer, joined."""
    client, messages = _prepare(before, text)
    return "".join(
        [str(update.text) async for update in client.get_response(messages, stream=True)]
    )


if __name__ == "__main__":
    main(say, stream)
