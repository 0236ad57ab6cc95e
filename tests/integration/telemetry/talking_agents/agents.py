"""Agents that log, print and fail; the text of the message is a secret that they should not have told."""

from __future__ import annotations

import logging
import sys

from a2a_tasks.agents import Agent, Skill, Turn


class Talker(Agent):
    """It talks in the process of its runner."""

    name = "Talker"
    description = "Of the tests."
    skills = [Skill("talk", "Talk", "Talks and fails", tags=["test"])]

    async def run(self, turn: Turn) -> str:
        """Log, print, warn of it, and fail."""
        logging.getLogger("tests.talker").info(
            "I was told password=%s\nand more", turn.text, extra={"order": 7, "api_key": turn.text}
        )
        sys.stdout.write("printed\n")
        raise ValueError(f"token={turn.text}")


class Hermit(Talker):
    """It talks in a process of its own."""

    name = "Hermit"
    runs_in = "process"
