"""Volume: as many short tasks as the host takes, and one fault after the other meanwhile. Every task is checked."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from lab.faultlab.client import SHAPES, Client
from lab.faultlab.lab import Episode, Lab
from lab.faultlab.scenarios import away

__all__ = ["run"]

#: Tasks of one episode, and clients that send them, one after the other.
TASKS, CLIENTS = 2500, 32
#: What is sent, and how; most are accepted and looked at in the tables.
STORIES = (
    *[("short", "poll")] * 26,
    *[("short", "block")] * 3,
    *[("tell", "poll")] * 4,
    ("steps", "poll"),
    ("stream", "stream"),
    ("tell", "stream"),
)
#: Of so many tasks one is read in every way, once all have ended.
ONE_IN = 4
#: Seconds between two faults.
PAUSE = 3.0
#: Seconds it may take until all has ended.
SETTLING = 600.0


def run(lab: Lab, seed: int) -> Episode:
    """So many tasks, and the faults that fit beside them."""
    lab.all_ready()
    return lab.episode("volume", seed, partial(_drive, lab), settling=SETTLING)


async def _drive(lab: Lab, rng: random.Random) -> dict[str, Any]:
    client = lab.client(rng)
    begun, faults = time.monotonic(), Counter[str]()
    try:
        sent = await _send(lab, client, rng, faults)
        seconds = time.monotonic() - begun
        read = await _read(sent[::ONE_IN], client)
    finally:
        await client.close()
    figures = {"tasks a minute": round(60 * TASKS / seconds), "read in every way": read}
    return {**figures, "faults": faults.total(), **faults}


async def _send(
    lab: Lab, client: Client, rng: random.Random, faults: Counter[str]
) -> list[tuple[str, str]]:
    """Have all tasks sent, while the host is hurt; returns the agent and the id of each."""
    left = iter(range(TASKS))
    hurting = asyncio.ensure_future(_hurt_again_and_again(lab, rng, faults))
    try:
        customers = (_customer(client, left, random.Random(rng.random())) for _ in range(CLIENTS))
        return [one for sent in await asyncio.gather(*customers) for one in sent]
    finally:
        hurting.cancel()
        with suppress(asyncio.CancelledError):
            await hurting


async def _customer(client: Client, left: Any, rng: random.Random) -> list[tuple[str, str]]:
    """Send one after the other; returns the agent and the id of each task."""
    sent = []
    for _ in left:
        shape, how = rng.choice(STORIES)
        agent, text = SHAPES[shape]
        sent.append((agent, await client.send(agent, text, shape=shape, how=how)))
    return sent


async def _read(tasks: Sequence[tuple[str, str]], client: Client) -> int:
    """Read each of these tasks in every way, once it has ended; returns how many there are."""
    left = iter(tasks)

    async def read() -> None:
        for agent, task in left:
            await client.until_settled(agent, task)
            await client.look(agent, task)

    await asyncio.gather(*(read() for _ in range(CLIENTS)))
    return len(tasks)


async def _hurt_again_and_again(lab: Lab, rng: random.Random, faults: Counter[str]) -> None:
    """A fault that was begun is mended, also when this is cancelled: the next episode has the same host."""
    while True:
        await asyncio.sleep(PAUSE * (0.5 + rng.random()))
        name = rng.choice(sorted(HURTS))
        faults[name] += 1
        act = asyncio.ensure_future(HURTS[name](lab, rng))
        try:
            await asyncio.shield(act)
        finally:
            await act


async def _kill(lab: Lab, rng: random.Random, kind: str) -> None:
    await asyncio.to_thread(lab.all_ready)  # somebody else has to be there
    lab.hurt(rng.choice(getattr(lab, kind)), "kill")


async def _freeze(lab: Lab, rng: random.Random) -> None:
    await asyncio.to_thread(lab.all_ready)
    victim = rng.choice(lab.workers)
    lab.hurt(victim, "stop")
    await asyncio.sleep(lab.plan.lease * (1.6 + rng.random()))
    lab.hurt(victim, "cont")


async def _away(lab: Lab, rng: random.Random, name: str) -> None:
    async with away(lab, name):
        await asyncio.sleep(rng.random())


async def _end_sessions(lab: Lab, _: random.Random) -> None:
    lab.tell(what="fault", name="sessions", process="postgres", pid=None, action="end")
    await asyncio.to_thread(lab.postgres.terminate_backends, lab.database)
    lab.tell(what="mended", name="sessions")


HURTS: dict[str, Callable[[Lab, random.Random], Awaitable[None]]] = {
    "workers killed": partial(_kill, kind="workers"),
    "web processes killed": partial(_kill, kind="webs"),
    "workers frozen": _freeze,
    "PostgreSQL away": partial(_away, name="postgres"),
    "Redis away": partial(_away, name="redis"),
    "sessions ended": _end_sessions,
}
