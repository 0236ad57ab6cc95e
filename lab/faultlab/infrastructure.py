"""Infrastructure faults: what Redis, PostgreSQL, the network and the machine do to a host at work, and what it promises then.

A run is a mixed load, a trickle of probes beside it, the fault at a seeded moment, its end, and time to settle. The offline
checker decides what was lost; a fault's criteria decide whether the promises about the meantime were kept.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lab.faultlab import harm
from lab.faultlab.checker import Violation
from lab.faultlab.client import Client
from lab.faultlab.lab import SETTLING, Episode, Lab
from lab.faultlab.promises import (
    ANSWER,
    POSTGRES,
    RECOVERY,
    REDIS,
    Criterion,
    Probe,
    Seen,
    agents_stop,
    an_outage_is_no_death,
    answers_within,
    hints_are_back,
    keeps_accepting,
    memory_is_bounded,
    neighbours_keep_pace,
    nobody_is_interrupted,
    recovers,
    refuses_cleanly,
)
from tests.support.proxy import Behaviour

__all__ = ["FAULTS", "Criterion", "Fault", "run"]

#: Shapes of the load; each run takes this many of them, at random.
SHAPES = ("short", "stream", "stream", "thread", "steps", "ask", "delegate", "careful")
TASKS = 24
#: Seconds over which the load begins, and within which the fault comes after it.
ARRIVAL = 3.0
#: Seconds between two probes.
TRICKLE = 0.25
#: Seconds for which probes go on when all is well again.
AFTERWARDS = RECOVERY + 3.0


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row of the table. `prepare`, `inject` and `mend` are called in a thread, `meanwhile` and `load` in the loop."""

    number: int
    name: str
    inject: harm.Act = lambda scene: None
    mend: harm.Act = harm.mend
    #: What goes on while it lasts.
    meanwhile: harm.Load | None = None
    #: Before the load begins.
    prepare: harm.Act | None = None
    #: How long it lasts, in seconds; 0 = until the load has ended.
    seconds: float = 5.0
    criteria: Sequence[Criterion] = ()
    #: Who is hurt, for the checker: "postgres" excuses lost leases.
    of: str = "redis"
    shapes: Sequence[str] = SHAPES
    #: More load, beside the shapes.
    load: harm.Load | None = None
    #: Seconds it may take until all has ended.
    settling: float = SETTLING
    #: What its lab has, beside proxies.
    lab: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


# --- the table ----------------------------------------------------------------------------------

FAULTS = (
    Fault(
        number=1,
        name="Redis killed, back with its data",
        inject=harm.kill_redis,
        mend=harm.redis_is_back,
        criteria=REDIS,
    ),
    Fault(
        number=2,
        name="Redis killed, back empty",
        inject=harm.kill_redis,
        mend=harm.redis_is_back_empty,
        criteria=REDIS,
    ),
    Fault(
        number=3,
        name="Redis gone for the whole run",
        inject=harm.kill_redis,
        mend=harm.redis_is_back_empty,
        seconds=0,
        criteria=REDIS,
    ),
    Fault(number=4, name="Redis full", inject=harm.fill_redis, criteria=REDIS),
    Fault(
        number=5,
        name="Redis black-holed",
        inject=harm.on_redis(Behaviour.black_hole()),
        criteria=(*REDIS, answers_within(2.0)),
    ),
    Fault(
        number=6,
        name="Redis resets its connections every 200 ms",
        inject=harm.on_redis(Behaviour(reset_every=0.2)),
        criteria=REDIS,
    ),
    Fault(
        number=7,
        name="Redis flushed",
        inject=lambda scene: scene.lab.redis.flushall(),
        criteria=REDIS,
    ),
    Fault(
        number=8, name="another Redis promoted", inject=harm.promote_another_redis, criteria=REDIS
    ),
    Fault(
        number=9,
        name="PostgreSQL restarted, immediate",
        inject=lambda scene: scene.lab.postgres.restart("immediate"),
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=10,
        name="PostgreSQL restarted, fast",
        inject=lambda scene: scene.lab.postgres.restart("fast"),
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=11,
        name="PostgreSQL down for 30 s",
        inject=harm.stop_postgres,
        seconds=30,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=12,
        name="sessions terminated, five a second",
        meanwhile=harm.terminate_again_and_again,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=13,
        name="limit of connections reached",
        inject=harm.limit_connections,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=14,
        name="task table locked for 10 s",
        inject=harm.lock_tasks,
        seconds=10,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=15,
        name="deadlocks",
        meanwhile=harm.deadlock_again_and_again,
        seconds=10,
        of="postgres",
        criteria=(keeps_accepting, nobody_is_interrupted),
    ),
    Fault(
        number=18,
        name="database only reads",
        inject=harm.only_read,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=19,
        name="database 200 ms away",
        inject=harm.on_postgres(Behaviour(latency=0.2, jitter=0.1)),
        seconds=10,
        of="network",
        criteria=(refuses_cleanly, nobody_is_interrupted, recovers, hints_are_back),
    ),
    Fault(
        number=20,
        name="worker cut off for three leases",
        prepare=harm.a_worker_aside,
        inject=harm.cut_it_off,
        seconds=18,
        of="postgres",
        shapes=("long", "long", "thread", "steps"),
        criteria=(keeps_accepting, agents_stop, recovers),
    ),
    Fault(
        number=21,
        name="answers of the database lost",
        inject=harm.on_postgres(Behaviour.one_way()),
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=24,
        name="agents hold the GIL for 10 s",
        load=harm.beside("blocking", 2),
        of="agent",
        seconds=10,
        criteria=(keeps_accepting, answers_within(ANSWER), recovers),
    ),
    Fault(
        number=27,
        name="web process killed under 200 streams",
        inject=harm.kill_a_web,
        load=harm.many_streams,
        of="web",
        shapes=(),
        criteria=(answers_within(ANSWER),),
    ),
    Fault(
        number=29,
        name="no descriptors left for a web process",
        inject=harm.take_descriptors,
        of="web",
        criteria=(refuses_cleanly, recovers),
    ),
    Fault(
        number=30,
        name="all workers killed again and again",
        meanwhile=harm.kill_workers_again_and_again,
        seconds=20,
        of="workers",
        criteria=(keeps_accepting, answers_within(ANSWER), recovers),
    ),
    Fault(
        number=31,
        name="PostgreSQL killed",
        inject=harm.kill_postgres,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=32,
        name="database black-holed",
        inject=harm.on_postgres(Behaviour.black_hole()),
        seconds=10,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=33,
        name="database cut off, its answers late",
        inject=harm.on_postgres(Behaviour.partition()),
        seconds=10,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=34,
        name="database connections cut after 20 kB",
        inject=harm.on_postgres(Behaviour(cut_after=20_000)),
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=35,
        name="Redis answers nobody for 5 s",
        inject=lambda scene: scene.lab.redis.client_pause(5),
        criteria=REDIS,
    ),
    Fault(
        number=36,
        name="Redis and PostgreSQL down together",
        inject=harm.stop_both,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=37,
        name="beat killed",
        inject=harm.kill_beat,
        of="beat",
        criteria=(keeps_accepting, nobody_is_interrupted, recovers),
    ),
    Fault(
        number=38,
        name="PostgreSQL restarted ten times within one task's life",
        meanwhile=harm.restart_ten_times,
        of="postgres",
        shapes=("marathon", "marathon", "stream", "steps", "thread"),
        criteria=(refuses_cleanly, recovers, an_outage_is_no_death),
        settling=90,
    ),
    Fault(
        number=39,
        name="no room on the database's disk",
        meanwhile=harm.fill_the_disk,
        seconds=10,
        of="postgres",
        criteria=(refuses_cleanly, recovers, hints_are_back),
        lab={"disk": 300},
    ),
    Fault(
        number=40,
        name="no memory for the database",
        inject=harm.starve_postgres,
        seconds=10,
        of="postgres",
        criteria=(refuses_cleanly, recovers, hints_are_back),
    ),
    Fault(
        number=41,
        name="no memory for workers",
        inject=harm.starve_workers,
        load=harm.beside("hungry", 3),
        seconds=10,
        of="workers",
        criteria=(keeps_accepting, recovers),
    ),
    Fault(
        number=42,
        name="clocks of workers an hour ahead and behind",
        prepare=harm.workers_with_clocks,
        inject=harm.step_clocks,
        seconds=15,
        of="workers",
        criteria=(keeps_accepting, answers_within(ANSWER), recovers),
    ),
    Fault(
        number=43,
        name="agents keep the interpreter for 10 s",
        load=harm.beside("locking", 2),
        of="agent",
        seconds=10,
        criteria=(keeps_accepting, recovers),
        settling=180,
    ),
    Fault(
        number=44,
        name="the whole host suspended for two leases",
        inject=harm.freeze("processes"),
        seconds=13,
        of="host",
        criteria=(recovers,),
    ),
    Fault(
        number=45,
        name="a worker and a web process suspended for two leases",
        inject=harm.freeze("workers:first", "webs:first"),
        seconds=13,
        of="host",
        criteria=(refuses_cleanly, recovers),
    ),
    Fault(
        number=46,
        name="PgBouncer restarted",
        inject=harm.restart_pgbouncer,
        of="postgres",
        criteria=POSTGRES,
        lab={"pooled": True},
    ),
    Fault(
        number=47,
        name="PostgreSQL restarted behind PgBouncer",
        inject=lambda scene: scene.lab.postgres.restart("fast"),
        of="postgres",
        criteria=POSTGRES,
        lab={"pooled": True},
    ),
    Fault(
        number=48,
        name="answers to COMMIT lost behind PgBouncer",
        inject=harm.on_postgres(Behaviour(cut_at=b"COMMIT\0")),
        seconds=3,
        of="postgres",
        criteria=POSTGRES,
        lab={"pooled": True},
    ),
    Fault(
        number=49,
        name="synchronous standby promoted",
        prepare=harm.follow_primary,
        inject=harm.promote,
        of="postgres",
        criteria=POSTGRES,
    ),
    Fault(
        number=50,
        name="a task that kills its process beside a hundred",
        load=harm.together(harm.beside("poison", 1), harm.beside("long", 100)),
        seconds=10,
        of="agent",
        shapes=(),
        criteria=(keeps_accepting, recovers),
        settling=240,
    ),
    Fault(
        number=51,
        name="large results and streams nobody reads beside small ones",
        meanwhile=harm.together(harm.beside("large", 4), harm.unread_streams),
        seconds=10,
        of="neighbour",
        criteria=(keeps_accepting, answers_within(ANSWER), neighbours_keep_pace, memory_is_bounded),
    ),
    Fault(
        number=52,
        name="lists of large tasks beside small ones",
        meanwhile=harm.lists_of_large_tasks,
        seconds=10,
        of="neighbour",
        criteria=(keeps_accepting, answers_within(ANSWER), neighbours_keep_pace, memory_is_bounded),
    ),
    Fault(
        number=53,
        name="slow tasks and their streams beside fast ones",
        meanwhile=harm.beside("long", 60, how="stream"),
        seconds=10,
        of="neighbour",
        criteria=(keeps_accepting, answers_within(ANSWER), neighbours_keep_pace),
    ),
)


# --- a run --------------------------------------------------------------------------------------


def run(lab: Lab, number: int, seed: int) -> Episode:
    """One run of the fault of that number, in a lab with proxies."""
    (fault,) = (fault for fault in FAULTS if fault.number == number)
    lab.all_ready()
    return lab.episode(str(fault), seed, partial(_drive, lab, fault), settling=fault.settling)


async def _drive(lab: Lab, fault: Fault, rng: random.Random) -> dict[str, Any]:
    seen = Seen(lab=lab)
    scene = harm.Scene(lab=lab, rng=rng, client=lab.client(rng), seen=seen)
    probing = asyncio.create_task(_probe(seen, rng, scene.over))
    try:
        if fault.prepare:
            await asyncio.to_thread(fault.prepare, scene)
        load = asyncio.ensure_future(_load(scene, fault))
        await asyncio.sleep(0.5 + rng.random() * ARRIVAL)
        await _hurt(scene, fault, load)
        await asyncio.sleep(AFTERWARDS)
        scene.over.set()
        await asyncio.gather(load, probing)
        violations = [
            Violation(f"C2.{fault.number}", text, [])
            for criterion in fault.criteria
            for text in criterion(seen)
        ]
        return {**seen.figures(), "violations": violations}
    finally:
        scene.over.set()
        await asyncio.to_thread(scene.undo.close)
        await asyncio.to_thread(scene.closing.close)
        await scene.client.close()


async def _hurt(scene: harm.Scene, fault: Fault, load: asyncio.Future[Any]) -> None:
    """Inject it, wait, and mend it; the history is told of both."""
    scene.seen.injected = time.time()
    scene.lab.tell(what="fault", name=fault.name, process=fault.of, pid=None, action="begun")
    await asyncio.to_thread(fault.inject, scene)
    ends = asyncio.create_task(_lasting(fault, load))
    if fault.meanwhile:
        going_on = asyncio.ensure_future(fault.meanwhile(scene))
        await ends
        scene.over.set()
        await going_on
        scene.over.clear()
    await ends
    await asyncio.to_thread(fault.mend, scene)
    scene.lab.tell(what="mended", name=fault.name)
    scene.seen.mended = time.time()


async def _lasting(fault: Fault, load: asyncio.Future[Any]) -> None:
    if fault.seconds:
        await asyncio.sleep(fault.seconds)
    else:
        await asyncio.wait([load])


async def _load(scene: harm.Scene, fault: Fault) -> None:
    """All tasks, begun within ARRIVAL seconds."""
    shapes = [scene.rng.choice(fault.shapes) for _ in range(TASKS if fault.shapes else 0)]
    moments = [scene.rng.random() * ARRIVAL for _ in shapes]
    carried = [_later(at, scene.client, shape) for at, shape in zip(moments, shapes, strict=True)]
    await asyncio.gather(*carried, *([fault.load(scene)] if fault.load else []))


async def _later(seconds: float, client: Client, shape: str) -> None:
    await asyncio.sleep(seconds)
    await client.carry(shape)


class _Witness:
    """Tells the lab's history, and makes probes of what is told."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self._open: dict[str, Probe] = {}

    def tell(self, **record: Any) -> None:
        self.seen.lab.tell(**record)
        key = str(record.get("key"))
        if record["what"] == "sent":
            self._open[key] = Probe(asked=time.time())
            self.seen.probes.append(self._open[key])
        elif record["what"] in {"accepted", "refused", "unanswered"}:
            probe = self._open[key]
            probe.answered = time.time()
            probe.retry_after = record.get("retry_after")
            probe.status = 200 if record["what"] == "accepted" else record.get("status")


async def _probe(seen: Seen, rng: random.Random, over: asyncio.Event) -> None:
    """A short task every quarter of a second, as long as it takes; returns when all of them are accepted."""
    client = Client(seen.lab.urls, _Witness(seen).tell, random.Random(rng.random()))
    client.patience = 15.0
    probes: list[asyncio.Task[str]] = []
    try:
        while not (over.is_set() and seen.mended):
            send = client.send("lab-short", "1", shape="short", how="poll")
            probes.append(asyncio.create_task(send))
            await asyncio.sleep(TRICKLE)
        await asyncio.gather(*probes)
    finally:
        for probe in probes:
            probe.cancel()
        await client.close()
