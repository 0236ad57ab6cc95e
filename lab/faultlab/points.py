"""Crash points: a process is killed, asked to end, or frozen past its lease, at each named failpoint."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from a2a_tasks.failpoints import NAMES
from lab.faultlab.checker import Violation
from lab.faultlab.client import Client
from lab.faultlab.lab import Episode, Lab

__all__ = ["ACTIONS", "POINTS", "run"]

#: Those of webhooks are the farm's (`lab/farm`).
POINTS = tuple(name for name in NAMES if not name.startswith("webhook."))
ACTIONS = ("kill", "term", "stop")
#: Leases a frozen process sleeps: when it wakes, its runs are somebody else's.
SLEEP = 2.0
#: Points passed only now and then: the first passing takes the fault.
RARE = {"worker.draining", "worker.stopping", "rescue.found", "rescue.fenced", "scheduler.fired"}
PARKING = {name for name in POINTS if name.startswith("park.")}
RARE |= PARKING
#: Shapes without which a point is not passed: a heartbeat comes every two seconds.
NEEDED = {"worker.beating": ["long"], "worker.keep_begins": ["steps"]}
NEEDED |= {point: ["park", "park"] for point in PARKING}
#: Seconds a fault may take to strike: beat fires every 5 s, a lease ends after 6.
STRIKING = 25.0
MIXED = ("short", "stream", "steps", "ask", "thread", "delegate", "careful")


def run(lab: Lab, point: str, action: str, seed: int) -> Episode:
    """One episode: five tasks of mixed shape, and the fault at that point. Deterministic but for the machine's timing."""
    lab.all_ready()
    return lab.episode(f"{point} {action}", seed, partial(_drive, lab, point, action))


async def _drive(lab: Lab, point: str, action: str, rng: random.Random) -> dict[str, Any]:
    client = lab.client(rng)
    fault = lab.arm(point, action, nth=1 if point in RARE else rng.choice((1, 2, 3)))
    load = asyncio.ensure_future(_load(lab, client, point, rng))
    try:
        struck = await fault.struck(STRIKING)
        if struck and action == "stop":
            await fault.wake(SLEEP * lab.plan.lease)
        await load
        lost = [] if struck else [Violation("lab", f"{point} was never passed", [])]
        return {"violations": lost, "point": point, "action": action}
    finally:
        load.cancel()
        await client.close()


def _load(lab: Lab, client: Client, point: str, rng: random.Random) -> Awaitable[Any]:
    special: dict[str, Callable[[], Awaitable[Any]]] = {
        "worker.stopping": lambda: _cancelling(client),
        "worker.draining": lambda: _draining(lab, client, rng),
        "rescue.found": lambda: _dying(lab, client, rng),
        "rescue.fenced": lambda: _dying(lab, client, rng),
        "scheduler.fired": lambda: _waiting(client, rng),
    }
    return special.get(point, lambda: _mixed(client, point, rng))()


async def _mixed(client: Client, point: str, rng: random.Random) -> None:
    """Five tasks, begun within a second; those whose path the point is on are among them."""
    needed = NEEDED.get(point, ["steps"] if ".step_" in point else ["stream"])
    shapes = [*needed, *rng.sample(MIXED, 4)]
    how = "stream" if point.startswith("stream.") else ""
    await asyncio.gather(*(_later(rng.random(), client, shape, how) for shape in shapes))


async def _later(seconds: float, client: Client, shape: str, how: str = "") -> None:
    await asyncio.sleep(seconds)
    await client.carry(shape, how=how)


async def _cancelling(client: Client) -> None:
    await asyncio.gather(
        client.cancel_when_working(), client.cancel_when_working(), client.carry("stream")
    )


async def _draining(lab: Lab, client: Client, rng: random.Random) -> None:
    await asyncio.gather(
        *(client.carry(shape) for shape in ("long", "steps", "thread", "long")),
        client.cancel_when_working(),
        _hurt_a_busy_worker(lab, rng, "term", agent="lab-stream"),
    )


async def _dying(lab: Lab, client: Client, rng: random.Random) -> None:
    shapes = ("stream", "steps", "thread", "long", "delegate")
    await asyncio.gather(
        *(client.carry(shape) for shape in shapes),
        _hurt_a_busy_worker(lab, rng, "kill", agent="lab-stream"),
    )


async def _waiting(client: Client, rng: random.Random) -> None:
    """Something to do for as long as beat takes to fire."""
    for _ in range(4):
        await asyncio.gather(client.carry("stream"), client.carry("short"))


async def _hurt_a_busy_worker(
    lab: Lab, rng: random.Random, action: str, *, agent: str = "%"
) -> None:
    await asyncio.sleep(rng.random())
    while (victim := lab.busy_worker(rng, agent)) is None:
        await asyncio.sleep(0.02)
    lab.hurt(victim, action)
