"""Streams that are cut: readers tear their connections at any byte, and resume by `Last-Event-ID` on any process."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

from lab.faultlab.client import SHAPES, Client
from lab.faultlab.lab import Episode, Lab

__all__ = ["run"]

#: Tasks of a whole episode, and who reads each of them.
TASKS, READERS = 20, 3
#: Out of so many frames one is torn.
ONE_IN = 3


def run(lab: Lab, seed: int, *, tasks: int = TASKS) -> Episode:
    """Tasks of 40 pieces, three readers each, every third frame torn: nothing may be missing or come twice."""
    lab.all_ready()
    return lab.episode("cuts", seed, partial(_drive, lab, tasks))


async def _drive(lab: Lab, tasks: int, rng: random.Random) -> dict[str, Any]:
    client = lab.client(rng)
    cuts = _Cuts(rng)
    try:
        await asyncio.gather(*(_task(client, cuts) for _ in range(tasks)))
        return {"cuts": cuts.made, "readers": tasks * READERS}
    finally:
        await client.close()


async def _task(client: Client, cuts: _Cuts) -> None:
    agent, _ = SHAPES["stream"]
    task = await client.send(agent, "40", shape="stream", how="poll")
    await asyncio.gather(*(client.follow(agent, task, cut=cuts.reader()) for _ in range(READERS)))
    await client.replay(agent, task)


class _Cuts:
    """Who tears, and how often it was done."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.made = rng, 0

    def reader(self) -> Any:
        """One reader's mind: it gets at least one frame between two tears, so that it comes to an end."""
        fresh = False

        def cut(_: int) -> bool:
            nonlocal fresh
            torn = fresh and self.rng.randrange(ONE_IN) == 0
            fresh = not torn
            self.made += torn
            return torn

        return cut
