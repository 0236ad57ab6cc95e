"""An agent that says which version it is and what it remembers; its version comes from the environment."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

from a2a_tasks.agents import Agent, Skill, Turn

__all__ = ["FarAgent"]


class FarAgent(Agent):
    """Says its version and its process, and asks if it is told to."""

    name = "Far"
    description = os.environ.get("FAR_DESCRIPTION", "Says which version it is.")
    version = os.environ["FAR_VERSION"]
    skills = [Skill("say", "Say", "Says its version.", tags=["say"])]

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Answer with the version, and with all versions that have answered in this conversation."""
        memory = turn.conversation.memory
        before = await memory.get("versions") or []
        await memory.set("versions", [*before, self.version])
        if turn.text == "ask":
            yield turn.ask("And?")
        else:
            yield f"{self.version} after {','.join(before) or 'nothing'}"
