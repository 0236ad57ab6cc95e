"""`python chat_llm.py URL` where llm is installed: its model of OpenAI's API, which keeps conversations itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chat_talk import API, KEY, main
from llm.default_plugins.openai_models import AsyncChat

#: The conversations by what was said and heard.
known: dict[tuple[str, ...], Any] = {}


async def _ask(before: Sequence[str], text: str, *, stream: bool) -> str:
    model = AsyncChat("demo", key=KEY, api_base=API)
    conversation = known.get(tuple(before)) or model.conversation()
    response = conversation.prompt(text, stream=stream)
    answer = "".join([piece async for piece in response])
    known[(*before, text, answer)] = conversation
    return answer


async def say(before: Sequence[str], text: str) -> str:
    """The answer."""
    return await _ask(before, text, stream=False)


async def stream(before: Sequence[str], text: str) -> str:
    """The answer, joined."""
    return await _ask(before, text, stream=True)


if __name__ == "__main__":
    main(say, stream)
