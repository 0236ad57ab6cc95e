"""Zombies: a worker is frozen at a random moment, for longer than its lease; then it goes on as if nothing had been."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

from lab.faultlab.lab import Episode, Lab

__all__ = ["calm", "run"]

CALM = ("stream", "steps", "ask", "delegate")
SHAPES = ("medium", "steps", "thread", "stream", "delegate", "careful")


def run(lab: Lab, seed: int) -> Episode:
    """One zombie: what it held is taken over, and nothing it says after that may be written."""
    lab.all_ready()
    return lab.episode("zombie", seed, partial(_drive, lab))


def calm(lab: Lab, seed: int) -> Episode:
    """The same tasks with nobody hurt: for labs in which something is wrong already."""
    return lab.episode("calm", seed, partial(_undisturbed, lab))


async def _undisturbed(lab: Lab, rng: random.Random) -> None:
    client = lab.client(rng)
    try:
        await asyncio.gather(*(client.carry(shape) for shape in CALM))
    finally:
        await client.close()


async def _drive(lab: Lab, rng: random.Random) -> dict[str, Any]:
    client = lab.client(rng)
    load = asyncio.gather(*(client.carry(shape) for shape in rng.sample(SHAPES, 4)))
    try:
        while (victim := lab.busy_worker(rng)) is None and not load.done():
            await asyncio.sleep(0.02)
        if victim is not None:
            await asyncio.sleep(rng.random() * 1.2)
            lab.hurt(victim, "stop")
            await asyncio.sleep(lab.plan.lease * (1.6 + rng.random()))
            lab.hurt(victim, "cont")
        await load
        return {"frozen": victim is not None}
    finally:
        load.cancel()
        await client.close()
