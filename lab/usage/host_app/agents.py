"""Two agents that call the model themselves, one of them in a process of its own, and one each of two frameworks."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn
from a2a_tasks.agents.later import Later

URL = os.environ["CHAT_URL"]
SKILLS = [Skill("ask", "Ask", "Asks the model as often as the prompt says.", tags=["test"])]
#: Requests to the model in a turn of the agents without a framework.
TIMES = 3
report = Turn.usage


def note(turn: Turn, **figures: Any) -> Later[None]:
    """Note the report in the file, then make it."""
    line = json.dumps({"text": turn.text, **figures}) + "\n"
    file = os.open(os.environ["USAGE_TRACE"], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
    return report(turn, **figures)


Turn.usage = note  # type: ignore[method-assign,assignment]


class Plain(Agent):
    """Asks the model in durable steps."""

    slug = "plain"
    name = "Plain"
    description = "Asks the model in durable steps."
    skills = SKILLS

    async def run(self, turn: Turn) -> Any:
        """Ask so often, each time with the answers so far."""
        said = [{"role": "user", "content": turn.text}]
        for number in range(TIMES):
            answer = await turn.step(f"ask {number}", self.ask, turn, list(said))
            said.append({"role": "assistant", "content": answer})
            yield f"{answer}\n"

    async def ask(self, turn: Turn, said: list[dict[str, str]]) -> str:
        """Return the answer of the model, and report what it used."""
        body = {"model": "scripted", "messages": said}
        async with turn.http.post(f"{URL}/chat/completions", json=body) as answer:
            found = await answer.json()
        tokens = found["usage"]
        await turn.usage(
            model="scripted",
            input_tokens=tokens["prompt_tokens"],
            output_tokens=tokens["completion_tokens"],
        )
        return str(found["choices"][0]["message"]["content"])


class InProcess(Plain):
    """The same, in a process of its own."""

    slug = "in-process"
    runs_in = "process"


if not sys.argv[0].endswith(
    "child.py"
):  # the process of an agent would import the frameworks for nothing
    importlib.import_module("lab.usage.host_app.frameworks")
