"""A chat with any OpenAI-compatible model, without a framework. CHAT_URL, CHAT_MODEL and CHAT_KEY name the model."""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from a2a_tasks.agents import Agent, AgentError, CallRefused, Message, Role, Skill, Turn

URL = os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1")
MODEL = os.environ.get("CHAT_MODEL") or "scripted"
HEADERS = {"Authorization": f"Bearer {os.environ.get('CHAT_KEY', 'none')}"}
PLAN = {"role": "system", "content": "Say in one sentence how you will answer."}


class Chat(Agent):
    """A plan in a durable step, which a crash does not repeat; then the answer, as it comes."""

    slug, name, description = "plain-chat", "Plain chat", "Talks with you, after some thought."
    one_at_a_time = "context"
    skills = [Skill("chat", "Chat", "Talks with you", tags=["chat"], examples=["hello"])]

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Answer the conversation so far. A cancelled turn ends the request, and with it the model's work."""
        said = [write_message(message) for message in await turn.conversation.history()]
        try:
            plan = await turn.step("plan", self.plan, turn, said)
            yield turn.working(plan)
            body = {"messages": [*said, {"role": "assistant", "content": plan}], "stream": True}
            async with self.ask(turn, body) as answer:
                async for line in answer.content:
                    if line.startswith(b"data: {"):
                        for choice in json.loads(line.removeprefix(b"data: "))["choices"]:
                            if piece := choice["delta"].get("content"):
                                yield piece
        except CallRefused as refused:  # the address is not public: docs/agents.md, Examples
            raise AgentError(f"CHAT_URL: {refused}") from refused
        except (aiohttp.ClientError, TimeoutError, LookupError, ValueError) as fault:
            raise AgentError("The model cannot answer. Please try again later.") from fault

    async def plan(self, turn: Turn, said: list[dict[str, str]]) -> str:
        """Return what the model plans, and report what it used."""
        async with self.ask(turn, {"messages": [PLAN, *said]}) as answer:
            found = await answer.json()
        used = found["usage"]
        tokens = {"input_tokens": used["prompt_tokens"], "output_tokens": used["completion_tokens"]}
        await turn.usage(model=MODEL, **tokens)
        return str(found["choices"][0]["message"]["content"])

    def ask(self, turn: Turn, body: dict[str, Any]) -> Any:
        """Return the request; errors of the model are raised when it is entered."""
        where, body = f"{URL}/chat/completions", {"model": MODEL, **body}
        return turn.http.post(where, json=body, headers=HEADERS, raise_for_status=True)


def write_message(message: Message) -> dict[str, str]:
    """Return the texts of a message, as OpenAI's protocol has them."""
    text = " ".join(part.text for part in message.parts if isinstance(part.text, str))
    return {"role": "assistant" if message.role is Role.AGENT else "user", "content": text}
