"""`python chat_litellm.py URL` where litellm is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import litellm
from chat_talk import API, KEY, main


async def _ask(before: Sequence[str], text: str, *, stream: bool) -> Any:
    messages = [
        {"role": "assistant" if place % 2 else "user", "content": each}
        for place, each in enumerate((*before, text))
    ]
    return await litellm.acompletion(
        model="openai/demo", api_base=API, api_key=KEY, messages=messages, stream=stream
    )


async def say(before: Sequence[str], text: str) -> str:
    """The answer."""
    found = await _ask(before, text, stream=False)
    return str(found.choices[0].message.content)


async def stream(before: Sequence[str], text: str) -> str:
    """The answer, joined."""
    chunks = await _ask(before, text, stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])


if __name__ == "__main__":
    main(say, stream)
