"""Agents for two kits: one that always asks back (TCK 0.3), and one that carries out instructions (ITK)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from a2a_tasks.agents import Turn
from examples.demo import conformance
from examples.demo.agents import Demo

__all__ = ["Asking", "Itk"]

#: Seconds until the question: a client that looks at once sees a task at work.
MOMENT = 0.3
#: A held task says that it is at work, so often and at such intervals in seconds; its client cancels it before.
REPEATS, INTERVAL = 20, 1.0
#: The kit's word for the end of a held task.
HELD = "\ntask-finished"


class Asking(Demo):
    """The demo agent, but a text without a script is answered by a question."""

    slug = "asking"
    name = "Asking"
    description = "Asks back, whatever it is told."

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Work for a moment, then ask."""
        if script := conformance.script(turn):
            async for said in script:
                yield said
            return
        yield turn.working()
        await asyncio.sleep(MOMENT)
        yield turn.ask("What else?")


class Itk(Demo):
    """The agent `current` of the ITK: it calls other agents as the kit's instruction says, by the kit's own code."""

    slug = "itk"
    name = "ITK"
    description = "Carries out instructions of the integration test kit."

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Carry out the instruction of the first file, and say what the called agents said."""
        yield turn.working()
        done = await carry_out(base64.b64decode(turn.parts[0].raw or b""))
        if done["hold"]:
            yield turn.working(done["text"] + HELD)
            for _ in range(REPEATS):
                yield turn.working()
                await asyncio.sleep(INTERVAL)
        yield turn.complete(done["text"])


async def carry_out(instruction: bytes) -> dict[str, Any]:
    """Run the kit's client in its own environment (CONFORMANCE_HOP is the command). Raises RuntimeError with what it says."""
    command = json.loads(os.environ["CONFORMANCE_HOP"])
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "PYTHONPATH": str(Path(command[1]).parent)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate(instruction)
    if process.returncode:
        raise RuntimeError(f"the hop failed with status {process.returncode}")
    done: dict[str, Any] = json.loads(told)
    return done
