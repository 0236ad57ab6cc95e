"""`python chat_gradio.py URL` where gradio and openai are installed: the chat that `gr.load_chat` makes, without its page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import gradio
from chat_talk import API, KEY, main


def _ask(before: Sequence[str], text: str, *, streaming: bool) -> Any:
    """Call it as its page does: texts of the history are in arrays, with members of its own."""
    chat = gradio.load_chat(API, "demo", KEY, streaming=streaming)
    history = [
        {
            "role": "assistant" if place % 2 else "user",
            "metadata": None,
            "options": None,
            "content": [{"type": "text", "text": each}],
        }
        for place, each in enumerate(before)
    ]
    return chat.fn({"text": text, "files": []}, history)


async def say(before: Sequence[str], text: str) -> str:
    """The answer."""
    return str(await asyncio.to_thread(_ask, before, text, streaming=False))


async def stream(before: Sequence[str], text: str) -> str:
    """The answer, of which each piece has all that came before."""
    pieces = await asyncio.to_thread(lambda: list(_ask(before, text, streaming=True)))
    return str(pieces[-1])


if __name__ == "__main__":
    main(say, stream)
