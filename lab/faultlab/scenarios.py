"""Short episodes that each put one promise to the test: what a broken build is caught with, and a sound one passes.

Most take a few seconds at leases of 1.5 s. All are bounded: a build that hangs is caught, too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.faultlab.checker import Limits, Violation
from lab.faultlab.client import SHAPES, Client, settled
from lab.faultlab.lab import QUICK, Episode, Lab, Plan
from lab.faultlab.postgres import Postgres
from lab.faultlab.processes import Process
from lab.faultlab.redis_server import RedisServer

__all__ = ["SCENARIOS", "Scenario"]

#: What a scenario adds to the verdict.
Drive = Callable[[Lab, Client, random.Random], Awaitable[list[Violation] | None]]


#: Leases that nobody loses on a machine that is merely slow.
LONG = {"A2A_LEASE_SECONDS": "6", "A2A_BEAT_SECONDS": "1"}


@dataclass(frozen=True, kw_only=True)
class Stage(Plan):
    """The lab of a scenario."""

    #: Does nobody lose a run unhurt here?
    steady: bool = False

    @property
    def limits(self) -> Limits:
        """Stricter than a campaign's on a machine that is full of labs."""
        return replace(super().limits, steady=self.steady, forced=self.lease + 2.0)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A story, and the host it is played on."""

    drive: Drive
    workers: int = 3
    environ: Mapping[str, str] = field(default_factory=dict)
    steady: bool = False
    #: Seconds it may take to settle; its story, twice as many.
    settling: float = 20.0

    def plan(self, source: Path) -> Plan:
        """The lab of this scenario, with the host's code from that directory."""
        return Stage(
            source=source,
            workers=self.workers,
            environ={**QUICK, **self.environ},
            steady=self.steady,
        )

    def play(self, lab: Lab, name: str, seed: int) -> Episode:
        """One episode."""
        return lab.episode(name, seed, lambda rng: self._driven(lab, rng), settling=self.settling)

    async def _driven(self, lab: Lab, rng: random.Random) -> dict[str, Any]:
        client = lab.client(rng)
        client.patience = PATIENCE
        try:
            return {"violations": await self.drive(lab, client, rng) or []}
        finally:
            await client.close()


#: Seconds for one answer.
PATIENCE = 10.0
SCENARIOS: dict[str, Scenario] = {}


def scenario(**plan: Any) -> Callable[[Drive], Drive]:
    """Name the scenario by its function."""

    def collect(drive: Drive) -> Drive:
        SCENARIOS[drive.__name__.replace("_", "-")] = Scenario(drive=drive, **plan)
        return drive

    return collect


# --- what they are made of ------------------------------------------------------------------


async def begin(client: Client, shape: str, text: str = "") -> str:
    """Send, and do not wait for the answer."""
    agent, usual = SHAPES[shape]
    return await client.send(agent, text or usual, shape=shape, how="poll")


async def see_through(client: Client, shape: str, task: str) -> None:
    """Wait for the end, and look at everything."""
    agent, _ = SHAPES[shape]
    await client.until_settled(agent, task)
    await client.replay(agent, task)


async def carry(client: Client, shape: str, text: str = "") -> None:
    """Both."""
    await see_through(client, shape, await begin(client, shape, text))


async def working(client: Client, shape: str, task: str) -> None:
    """Wait until an agent is at it."""
    agent, _ = SHAPES[shape]
    await until(lambda: _began(client, agent, task))


async def _began(client: Client, agent: str, task: str) -> bool:
    view = await client.get(agent, task)
    return settled(view) or view["status"]["state"] == "TASK_STATE_WORKING"


async def until(look: Callable[[], Awaitable[Any]], seconds: float = 20.0) -> Any:
    """Look every 50 ms until something is there. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(0.05)


async def within(seconds: float, *works: Awaitable[Any]) -> None:
    """Do these at once, but no longer than that: the checker sees what was left undone."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*works)


async def busy(lab: Lab, rng: random.Random, *, parked: bool = False) -> Process:
    """A worker that holds a run (one that was parked)."""

    async def look() -> Process | None:
        return lab.busy_worker(rng, parked=parked)

    found: Process = await until(look)
    return found


@asynccontextmanager
async def away(lab: Lab, name: str) -> AsyncIterator[None]:
    """A server that is away for as long as the block lasts: `redis` or `postgres`."""
    server: Postgres | RedisServer = lab.redis if name == "redis" else lab.postgres
    lab.tell(what="fault", name=name, process=name, pid=None, action="stop")
    await asyncio.to_thread(server.stop)
    try:
        yield
    finally:
        await asyncio.to_thread(server.start)
        lab.tell(what="mended", name=name)


# --- nothing is broken ------------------------------------------------------------------------


@scenario(steady=True, environ=LONG)
async def calm(lab: Lab, client: Client, rng: random.Random) -> None:
    """A little of everything."""
    shapes = ("short", "stream", "steps", "thread", "ask", "delegate", "careful")
    streamed = [client.carry(shape, how="stream") for shape in ("stream", "steps")]
    await within(15, *(client.carry(s) for s in shapes), *streamed, client.cancel_when_working())


@scenario(steady=True, environ=LONG)
async def crowd(lab: Lab, client: Client, rng: random.Random) -> None:
    """Many tasks at once, and three workers that want them."""
    for _ in range(2):
        await within(15, *(carry(client, "short") for _ in range(30)))


@scenario()
async def sent_twice(lab: Lab, client: Client, rng: random.Random) -> None:
    """One key, several sends at once, to any process."""
    for _ in range(8):
        key = f"key-{rng.getrandbits(64):x}"
        send = {"shape": "short", "how": "poll", "key": key}
        await within(10, *(client.send("lab-short", "1", **send) for _ in range(4)))


@scenario(environ={"FAULTLAB_PIECE": "0.02"})
async def cuts(lab: Lab, client: Client, rng: random.Random) -> None:
    """Streams are cut and resumed, on any process, from wherever they were."""
    task = await begin(client, "stream", "120")

    def cut(_: int) -> bool:
        return rng.random() < 0.1

    readers = (client.follow("lab-stream", task, cut=cut) for _ in range(4))
    await within(15, see_through(client, "stream", task), *readers)


@scenario(environ={"FAULTLAB_PIECE": "0.005"})
async def glances(lab: Lab, client: Client, rng: random.Random) -> None:
    """Streams begin, with the Task as it is, while its artifact grows quickly, and are left at once."""
    tasks = [await begin(client, "stream", "500") for _ in range(2)]

    async def look(task: str) -> None:
        while not await client.glance("lab-stream", task):
            pass

    await within(20, *(look(task) for task in tasks * 4))


@scenario()
async def cancel(lab: Lab, client: Client, rng: random.Random) -> None:
    """Tasks are cancelled while their agents work."""
    works = [client.cancel_when_working() for _ in range(3)]
    await within(8, *works, client.carry("stream"))


@scenario()
async def cancel_the_ended(lab: Lab, client: Client, rng: random.Random) -> None:
    """What has ended is not cancelled, and the client is told so."""
    task = await begin(client, "short")
    await see_through(client, "short", task)
    await within(3, client.cancel("lab-short", task))


# --- processes are hurt ---------------------------------------------------------------------------


@scenario()
async def kill(lab: Lab, client: Client, rng: random.Random) -> None:
    """A worker is killed while it works."""
    works = [carry(client, s, t) for s, t in (("stream", "40"), ("steps", "30"), ("thread", "30"))]
    await within(30, *works, hurt_busy(lab, rng, "kill"))


@scenario()
async def told_in_parts(lab: Lab, client: Client, rng: random.Random) -> None:
    """Agents tell a text between steps and long sleeps, and three workers are killed meanwhile: no word comes twice."""
    works = [client.carry("tell") for _ in range(10)]
    await within(40, *works, _hurt_thrice(lab, rng))


async def _hurt_thrice(lab: Lab, rng: random.Random) -> None:
    """Kill one before it has slept, and two that have gone on after a sleep."""
    await hurt_busy(lab, rng, "kill")
    for _ in range(2):
        victim = await busy(lab, rng, parked=True)
        await asyncio.sleep(rng.random() / 3)
        lab.hurt(victim, "kill")


async def hurt_busy(lab: Lab, rng: random.Random, action: str) -> None:
    victim = await busy(lab, rng)
    await asyncio.sleep(0.5 + rng.random())
    lab.hurt(victim, action)


@scenario()
async def kill_at_once(lab: Lab, client: Client, rng: random.Random) -> None:
    """A worker is killed before its first heartbeat."""
    fault = lab.arm("worker.agent_started", "kill")
    await within(12, carry(client, "stream"), fault.struck(10))


@scenario()
async def kill_among_many(lab: Lab, client: Client, rng: random.Random) -> None:
    """A worker is killed while the others work on."""
    tasks = [await begin(client, "forever") for _ in range(12)]
    await asyncio.gather(*(working(client, "forever", task) for task in tasks))
    await hurt_busy(lab, rng, "kill")
    await asyncio.sleep(lab.plan.limits.recovery + 2)
    await within(10, *(client.cancel("lab-forever", task) for task in tasks))


@scenario(settling=60.0)
async def poison(lab: Lab, client: Client, rng: random.Random) -> None:
    """Whoever takes one task dies: it fails alone, and visibly; those beside it are done."""
    begin_both = (begin(client, shape) for shape in ("poison", *["medium"] * 8))
    bad, *good = await asyncio.gather(*begin_both)
    await within(80, see_through(client, "poison", bad))
    await within(30, *(see_through(client, "medium", task) for task in good))


@scenario()
async def zombie(lab: Lab, client: Client, rng: random.Random) -> None:
    """A worker is frozen with words on its lips, until others have its runs; then it says them."""
    works = [carry(client, "stream", "60") for _ in range(4)] + [carry(client, "steps", "50")]
    freeze = freeze_at(lab, "worker.append_begins", nth=rng.randrange(10, 20))
    await within(40, *works, freeze)


async def freeze_at(lab: Lab, point: str, nth: int = 1) -> None:
    """Freeze who comes by; it goes on once all it had is somebody else's."""
    fault = lab.arm(point, "stop", nth=nth)
    if await fault.struck(15):
        with suppress(TimeoutError):
            await until(lambda: _taken_from(lab, fault.pid), 4 * lab.plan.lease)
        await fault.wake(0)


async def _taken_from(lab: Lab, pid: int) -> bool:
    """Has everything that was begun by this process been begun again by another?"""
    begun = [record for record in lab.ledger() if record.what == "began"]
    newest = {record["task"]: record for record in begun}
    had = {record["task"] for record in begun if record["pid"] == pid}
    return bool(had) and all(newest[task]["pid"] != pid for task in had)


@scenario(environ={"FAULTLAB_PIECE": "1.5"})
async def zombie_in_a_step(lab: Lab, client: Client, rng: random.Random) -> None:
    """The same with what a step gave, and others are in the middle of that step."""
    await within(40, carry(client, "steps", "3"), freeze_at(lab, "worker.keep_begins"))


@scenario()
async def zombie_before_a_step(lab: Lab, client: Client, rng: random.Random) -> None:
    """A worker is frozen before a step; when it wakes, others have taken that step and kept it."""
    fault = lab.arm("worker.step_begins", "stop", nth=4)
    load = asyncio.ensure_future(carry(client, "steps", "8"))
    if await fault.struck(10):
        await fault.wake(lab.plan.lease + 3)
        await asyncio.sleep(1)  # for what it does now
    await within(20, load)


@scenario(steady=True, environ={"A2A_LEASE_SECONDS": "3", "A2A_BEAT_SECONDS": "0.4"})
async def frozen_rescuer(lab: Lab, client: Client, rng: random.Random) -> None:
    """Who is about to rescue a run is frozen; others rescue and carry it, and then it goes on."""
    task = await begin(client, "stream", "80")
    await working(client, "stream", task)
    victim = await busy(lab, rng)
    fault = lab.arm("rescue.found", "stop")
    lab.hurt(victim, "kill")
    if await fault.struck(10):
        await fault.wake(1.5 * lab.plan.lease)
    await within(30, see_through(client, "stream", task))


@scenario(workers=2, environ={"A2A_RUN_SLOTS": "1"})
async def no_room(lab: Lab, client: Client, rng: random.Random) -> None:
    """A killed worker's run waits, since the other is full: nobody may write for it meanwhile."""
    watch = asyncio.ensure_future(held(lab))
    tasks = [await begin(client, "stream", "60") for _ in range(2)]
    await asyncio.gather(*(working(client, "stream", task) for task in tasks))
    await hurt_busy(lab, rng, "kill")
    await within(40, *(see_through(client, "stream", task) for task in tasks))
    watch.cancel()


HELD = """
select t.public_id, t.state from a2a_tasks_task t where t.run_token <> '' and not exists (
  select from a2a_tasks_run r where r.task_id = t.id and r.status = 'running' and r.token = t.run_token)
"""


async def held(lab: Lab) -> None:
    """Look again and again for tasks that are held by no running run, and tell of each once."""
    known: set[str] = set()
    while True:
        for task, state in await asyncio.to_thread(lab.postgres.execute, HELD, lab.database):
            if task not in known:
                lab.tell(what="held", task=task, state=state)
                known.add(task)
        await asyncio.sleep(0.02)


@scenario(workers=1, environ=LONG)
async def one_row_locked(lab: Lab, client: Client, rng: random.Random) -> list[Violation]:
    """Somebody holds the row of one run for longer than a lease: the others keep theirs."""
    tasks = [await begin(client, "forever") for _ in range(6)]
    await asyncio.gather(*(working(client, "forever", task) for task in tasks))
    lock = (
        "select from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id"
        " where t.public_id = %s for update of r"
    )
    with lab.postgres.locked(lock, lab.database, tasks[0]):
        await asyncio.sleep(2.5 * lab.plan.lease)
    await within(10, *(client.cancel("lab-forever", task) for task in tasks))
    began = [record for record in lab.ledger() if record.what == "began"]
    again = [r for r in began if r["attempt"] > 1 and r["task"] != tasks[0]]
    return [Violation("I7", "others were begun again", again)] if again else []


@scenario(
    workers=1,
    environ={
        **LONG,
        "A2A_RUN_SLOTS": "2",
        "A2A_ORPHAN_SECONDS": "2",
        "A2A_PRESENCE_SECONDS": "0.5",  # a worker judges once it has listened for three of these
    },
)
async def two_app_sets(lab: Lab, client: Client, rng: random.Random) -> None:
    """A worker with other agents takes from the same queue, where runs wait for one that is busy."""
    slow = [await begin(client, "forever") for _ in range(2)]
    await asyncio.gather(*(working(client, "forever", task) for task in slow))
    waiting = [await begin(client, "short") for _ in range(3)]
    with lab.another_worker("other", A2A_APPS="tests.support.execution.neighbours"):
        await asyncio.sleep(5)
        await within(10, *(client.cancel("lab-forever", task) for task in slow))
        await within(10, *(see_through(client, "short", task) for task in waiting))


# --- the database, and hints ---------------------------------------------------------------------------


@scenario()
async def step_unkept(lab: Lab, client: Client, rng: random.Random) -> None:
    """The database fails while a step is kept."""
    fault = lab.arm("worker.step_inside", "raise")
    await within(25, carry(client, "steps"), carry(client, "steps"), fault.struck(10))


@scenario(workers=0, environ={"A2A_RUNS": "local"})
async def commit_undone(lab: Lab, client: Client, rng: random.Random) -> None:
    """Agents run in the web processes, and one is frozen right after an event was announced."""
    streams = [client.carry("medium", how="stream") for _ in range(3)]
    await within(40, *streams, freeze_at(lab, "worker.announced", nth=4))


@scenario()
async def database_away(lab: Lab, client: Client, rng: random.Random) -> None:
    """PostgreSQL is away for some seconds: clients are told to come again, and nothing is lost."""
    works = [carry(client, "stream", "30"), carry(client, "steps", "20")]

    async def outage() -> None:
        await busy(lab, rng)
        async with away(lab, "postgres"):
            await asyncio.sleep(2)

    async def customers() -> None:
        for _ in range(12):
            await carry(client, "short")

    await within(40, *works, outage(), customers(), customers())


@scenario()
async def database_crash(lab: Lab, client: Client, rng: random.Random) -> None:
    """PostgreSQL crashes under load and is back at once: what was accepted is there."""

    async def customers() -> None:
        for _ in range(15):
            await carry(client, "short")

    async def crash() -> None:
        await asyncio.sleep(1 + rng.random())
        lab.tell(what="fault", name="postgres", process="postgres", pid=None, action="crash")
        await asyncio.to_thread(lab.postgres.restart, "immediate")
        lab.tell(what="mended", name="postgres")

    await within(40, *(customers() for _ in range(6)), crash())


@scenario()
async def cancel_without_hints(lab: Lab, client: Client, rng: random.Random) -> None:
    """Redis is away, and tasks are cancelled: their agents stop nevertheless."""
    async with away(lab, "redis"):
        await within(15, *(client.cancel_when_working() for _ in range(2)))
        await asyncio.sleep(lab.plan.limits.forced + 2)


@scenario()
async def streams_without_hints(lab: Lab, client: Client, rng: random.Random) -> None:
    """Redis is away: streams tell everything nevertheless, also when a task is cancelled beside them."""
    patience = lab.plan.limits.recovery + 8
    async with away(lab, "redis"):
        ended = await begin(client, "stream", "15")
        cut = [await begin(client, "stream", "200") for _ in range(2)]
        works = [follow(client, task) for task in (ended, *cut) for _ in range(3)]
        await within(patience, *works, *(cancel_soon(client, task, rng) for task in cut))
    await within(10, *(see_through(client, "stream", task) for task in (ended, *cut)))


async def follow(client: Client, task: str) -> None:
    await client.follow("lab-stream", task)


async def cancel_soon(client: Client, task: str, rng: random.Random) -> None:
    await working(client, "stream", task)
    await asyncio.sleep(1 + rng.random())
    await client.cancel("lab-stream", task)
