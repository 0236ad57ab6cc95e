"""Trees of tasks whose processes are killed: those of callers, of those that they called, or of both at once."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lab.faultlab.checker import Limits
from lab.faultlab.client import SHAPES, Client, settled
from lab.faultlab.dump import Dump, dump
from lab.faultlab.lab import Episode, Lab, Plan
from lab.faultlab.processes import Process

__all__ = ["KILLS", "Embedded", "EmbeddedLab", "Grove", "run"]

#: Kills of one episode, seconds from one to the next, and clients that send trees meanwhile, one after the other.
KILLS, PAUSE, CLIENTS = 5, 2.0, 4
#: Of so many trees one is cancelled.
ONE_IN = 6
SETTLING = 300.0
#: Seconds in which a second process has to be there that holds a run.
PATIENCE = 20.0
#: The agents that call, and those that are called.
CALLERS, CALLED = ("lab-tree", "lab-middle"), ("lab-leaf", "lab-short")
#: Calls that are not closed yet, and tasks that are to be cancelled.
LEFT = "select id from a2a_tasks_delegation where open or cancel"


@dataclass(frozen=True, kw_only=True)
class Grove(Plan):
    """The host of trees."""

    webs: int = 1
    beat: bool = False

    @property
    def limits(self) -> Limits:
        """Other parts measure times: here all processes may be away at once, for as long as they take to start."""
        return replace(super().limits, recovery=SETTLING, forced=SETTLING)


@dataclass(frozen=True, kw_only=True)
class Embedded(Grove):
    """The embedded host: one process on SQLite, which does all duties."""

    workers: int = 0


class EmbeddedLab(Lab):
    """The lab of an embedded host."""

    def _start_servers(self) -> None:
        self.file = self.directory / "host.sqlite3"

    @property
    def servers(self) -> dict[str, str]:
        """The file."""
        return {"DATABASE_URL": f"sqlite:///{self.file}", "A2A_RUNS": "local"}

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the database."""
        with closing(sqlite3.connect(self.file, timeout=10)) as file:
            return file.execute(sql).fetchall()

    def dump(self) -> Dump:
        """The rows of this episode's tasks."""
        return dump(self.file, self._first_task)


def run(lab: Lab, kills: int, seed: int) -> Episode:
    """So many kills, while clients send trees, answer their questions, and cancel some."""
    lab.all_ready()
    return lab.episode("trees", seed, partial(_drive, lab, kills), settling=SETTLING)


async def _drive(lab: Lab, kills: int, rng: random.Random) -> dict[str, Any]:
    client, killed = lab.client(rng), asyncio.Event()
    client.patience = 10.0
    try:
        customers = [_customer(client, random.Random(rng.random()), killed) for _ in range(CLIENTS)]
        sending = asyncio.gather(*customers)
        try:
            victims = await _kill_again_and_again(lab, rng, kills)
        finally:
            killed.set()
        ends = sum(await sending, Counter[str]())
        while await asyncio.to_thread(lab.execute, LEFT):
            await asyncio.sleep(0.1)
        return {"kills": kills, **victims, **ends}
    finally:
        await client.close()


async def _customer(client: Client, rng: random.Random, killed: asyncio.Event) -> Counter[str]:
    """Send one tree after the other until all kills are done; returns what became of them."""
    ends = Counter[str]()
    while not killed.is_set():
        if rng.randrange(ONE_IN):
            await client.carry("tree")
            ends["trees completed"] += 1
        else:
            await _cancel(client, rng)
            ends["trees cancelled"] += 1
    return ends


async def _cancel(client: Client, rng: random.Random) -> None:
    agent, text = SHAPES["tree"]
    task = await client.send(agent, text, shape="tree", how="poll")
    await asyncio.sleep(4 * rng.random())
    if not settled(await client.get(agent, task)) or rng.random() < 0.5:
        await client.cancel(agent, task)
    else:
        await client.send(agent, "answer late", shape="tree", how="poll", task=task)
        await client.until_settled(agent, task)
    await client.look(agent, task)


async def _kill_again_and_again(lab: Lab, rng: random.Random, kills: int) -> Counter[str]:
    """Kill the worker of a caller, of a called task, or both; returns how often each. Both count once."""
    done = Counter[str]()
    for _ in range(kills):
        await asyncio.sleep(PAUSE * (0.5 + rng.random()))
        kinds = rng.choice(([CALLERS], [CALLED], [CALLERS, CALLED]))
        victims = [await _find(lab, rng, kinds[0], [])]
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                victims += [await _find(lab, rng, agents, victims) for agents in kinds[1:]]
        await asyncio.sleep(rng.random())
        done[_name(kinds, victims)] += 1
        for victim in {victim.name: victim for victim in victims}.values():
            lab.hurt(victim, "kill")
    return done


def _name(kinds: Sequence[Sequence[str]], victims: Sequence[Process]) -> str:
    if len(victims) == 2:
        return "both killed"
    return "callers killed" if kinds[0] == CALLERS else "called killed"


async def _find(
    lab: Lab, rng: random.Random, agents: Sequence[str], others: Sequence[Process]
) -> Process:
    """A process that holds a run of one of these agents, and is none of the others, if there are several processes."""
    while True:
        agent = rng.choice(agents)
        victim = lab.busy_worker(rng, agent)
        if victim is not None and (victim not in others or len(lab.runners) == 1):
            return victim
        await asyncio.sleep(0.02)
