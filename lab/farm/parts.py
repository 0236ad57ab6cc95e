"""The parts of the campaign: each drives a lab, and says what came of it."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from a2a_tasks.failpoints import NAMES
from lab.farm.admin_pages import make_operator
from lab.farm.checker import Evidence, latencies
from lab.farm.lab import FarmLab
from lab.farm.load import Clients, bad_receivers, good_receivers
from lab.farm.rows import Rows
from lab.farm.server import BARE
from lab.farm.ways import WAYS, Ends
from lab.faultlab.checker import Violation
from lab.faultlab.history import Record
from lab.faultlab.lab import Episode
from lab.faultlab.scenarios import away

__all__ = [
    "ACTIONS",
    "POINTS",
    "behaviours",
    "beside_large",
    "drain",
    "kill",
    "neighbours",
    "outage",
]

#: Seconds that the five days of the schedule, and what is under way then, may take on top of what is scaled.
GRACE = 60.0
#: The days after which a receiver is given up, and those of the schedule, in seconds.
PATIENCE = 5 * 86_400
POINTS = tuple(name for name in NAMES if name.startswith("webhook."))
ACTIONS = ("kill", "term", "stop")
#: What the actions do to a process.
DONE = {"kill": "killed", "stop": "frozen"}
#: What a task of volume is told of.
WORDS = 25
#: Points that are passed once for many notifications: the last passing that may take the fault.
PASSED = {"webhook.claimed": 2, "webhook.settled": 5, "webhook.disabling": 1}
#: Seconds a fault may take to strike, and those a frozen process sleeps beyond its lease, which is two deliveries and five seconds.
STRIKING, SLEEP = 25.0, 5.0 + 3.0

Drive = Callable[[random.Random], Awaitable[dict[str, Any]]]


def settling(lab: FarmLab) -> float:
    """Seconds until all must be delivered or dead."""
    return 2 * PATIENCE * lab.terms.scale + 20 * lab.terms.limit + GRACE


# --- behaviours -------------------------------------------------------------------------------


def behaviours(lab: FarmLab, numbers: Sequence[int], tasks: int, words: int, seed: int) -> Episode:
    """So many tasks of so many words at each kind of receiver, all at once, and URLs that may not be registered."""
    lab.all_ready()
    lab.operator = make_operator(lab.environ, lab.plan.source)
    drive = partial(_each_kind, lab, numbers, tasks, words)
    episode = lab.episode(f"{len(numbers)} kinds", seed, drive, settling=settling(lab))
    lab.operator = None
    episode.figures["kinds"] = kinds(lab, numbers)
    return episode


async def _each_kind(
    lab: FarmLab, numbers: Sequence[int], tasks: int, words: int, rng: random.Random
) -> dict[str, Any]:
    clients = Clients(lab, rng)
    text = f"{words - 1} 0.05"  # the end is told of, too
    try:
        refused = await clients.refused()
        loads = [_one_kind(clients, number, tasks, text) for number in numbers]
        loads.append(_astray(clients, lab))
        await asyncio.gather(*loads)
        return {"refused": refused}
    finally:
        await clients.close()


async def _one_kind(clients: Clients, number: int, tasks: int, text: str) -> None:
    """The tasks of a kind are shared among its variants; each variant has one at least."""
    way = WAYS[number]
    urls = way.urls(clients.lab.ports)
    for n in range(max(tasks, len(urls))):
        ends = Ends.DELIVERED if (number, n % len(urls)) == (36, 1) else way.ends
        agent = "farm-write" if n % 5 == 4 and number != 36 else "farm-tell"
        old = n % 5 == 3 and number != 36
        await clients.task(urls[n % len(urls)], ends, agent=agent, text=text, way=number, old=old)


def beside_large(lab: FarmLab, tasks: int, seed: int) -> Episode:
    """So many tasks of six megabytes, told of in 1.0 piece by piece and in 0.3 at the end, and as many small ones beside."""
    lab.all_ready()
    drive = partial(_beside_large, lab, tasks)
    return lab.episode("large beside small", seed, drive, settling=settling(lab))


async def _beside_large(lab: FarmLab, tasks: int, rng: random.Random) -> dict[str, Any]:
    clients = Clients(lab, rng)
    large, small = good_receivers(lab, 2)
    sizes = {"agent": "farm-large", "text": "12 0"}
    try:
        await asyncio.gather(
            clients.tasks(large, Ends.DELIVERED, tasks, **sizes),
            clients.tasks(large, Ends.DELIVERED, tasks, old=True, **sizes),
            clients.tasks(small, Ends.DELIVERED, tasks, text="9 0.05"),
        )
        return {}
    finally:
        await clients.close()


async def _astray(clients: Clients, lab: FarmLab) -> None:
    """Names that are well to look at, and lead inside."""
    for name in ("inside.example.com", "metadata.example.com"):
        await clients.task(f"http://{name}:{lab.ports['canary']}/", Ends.DEAD, text="1 0")


def kinds(lab: FarmLab, numbers: Sequence[int]) -> dict[str, dict[str, Any]]:
    """By kind: what became of its notifications."""
    e = Evidence(lab.records(), lab.rows(), lab.terms)
    found: dict[str, dict[str, Any]] = {}
    for number in numbers:
        tags = [tag for tag, record in e.registered.items() if record["way"] == number]
        rows = [row for tag in tags for row in e.deliveries.get(tag, [])]
        tried = [attempt for row in rows for attempt in e.attempts[row.row]]
        found[str(number)] = {
            "what": WAYS[number].what,
            "notifications": len(rows),
            "ended": dict(Counter(row.status for row in rows)),
            "attempts": len(tried),
            "answers": dict(Counter(str(a.status or a.fault) for a in tried)),
            "came": sum(len(e.arrivals.get(tag, ())) for tag in tags),
        }
    return found


# --- volume and isolation ---------------------------------------------------------------------


def neighbours(
    lab: FarmLab, name: str, bad: float, events: int, endpoints: int, rate: float, seed: int
) -> Episode:
    """So many events to so many receivers, a share of them bad; `rate` is of tasks a second, 0 = as many as go in."""
    lab.all_ready()
    count = round(endpoints * bad)
    receivers = [(url, Ends.DELIVERED, 0) for url in good_receivers(lab, endpoints - count)]
    receivers += [(url, way.ends, way.number) for way, url in bad_receivers(lab, count)]
    drive = partial(_spread, lab, receivers, events // WORDS, rate)
    before = pushers_seconds(lab)
    episode = lab.episode(name, seed, drive, settling=settling(lab) + events / 50)
    spent = pushers_seconds(lab) - before
    episode.figures["ms of a processor each"] = round(1000 * spent / events, 2)
    episode.figures.update(_figures(lab, events, endpoints, count, seed))
    return episode


async def _spread(
    lab: FarmLab,
    receivers: Sequence[tuple[str, Ends, int]],
    tasks: int,
    rate: float,
    rng: random.Random,
) -> dict[str, Any]:
    """Tasks to the receivers in turns; beside them one task after the other without webhooks, whose times are kept."""
    clients = Clients(lab, rng)
    probes: list[float] = []
    probing = asyncio.ensure_future(_probe(clients, probes))
    free = asyncio.Semaphore(40)
    shuffled = rng.sample(receivers, len(receivers))
    begun = time.monotonic()

    async def one(n: int) -> None:
        url, ends, way = shuffled[n % len(shuffled)]
        async with free:
            await clients.task(url, ends, text=f"{WORDS - 1} 0.05", way=way)

    try:
        running = []
        for n in range(tasks):
            running.append(asyncio.ensure_future(one(n)))
            if rate:
                await asyncio.sleep(max(0.0, begun + (n + 1) / rate - time.monotonic()))
        await asyncio.gather(*running)
        return {
            "accepted in": round(time.monotonic() - begun, 1),
            **_shares("agent", sorted(probes)),
        }
    finally:
        probing.cancel()
        await clients.close()


async def _probe(clients: Clients, probes: list[float]) -> None:
    while True:
        probes.append(await clients.probe())
        await asyncio.sleep(0.05)


def _figures(lab: FarmLab, events: int, endpoints: int, bad: int, seed: int) -> dict[str, Any]:
    records, rows = lab.records(), lab.rows()
    registered = [record for record in records if record.what == "registered"]
    healthy = {str(record["tag"]) for record in registered if not record["way"]}
    return {
        "events": events,
        "endpoints": endpoints,
        "bad": bad,
        **_shares("healthy", latencies(records, rows, healthy)),
        **_speed(records, rows, healthy),
    }


def _shares(name: str, ascending: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile, in seconds."""
    if not ascending:
        return {}
    p99 = ascending[min(len(ascending) - 1, len(ascending) * 99 // 100)]
    return {f"{name} p50": round(statistics.median(ascending), 4), f"{name} p99": round(p99, 4)}


def _speed(records: Sequence[Record], rows: Rows, tags: set[str]) -> dict[str, Any]:
    """Deliveries a second, from the first to the last of these webhooks."""
    came = [record.t for record in records if record.what == "answered" and record["tag"] in tags]
    if len(came) < 2:
        return {}
    return {
        "delivered": len(came),
        "a second": round(len(came) / (max(came) - min(came)), 1),
        "deliveries": len(rows.deliveries),
        "attempts": len(rows.attempts),
    }


# --- throughput -------------------------------------------------------------------------------


def drain(lab: FarmLab, events: int, endpoints: int, seed: int) -> Episode:
    """All events are there before a pusher is: how fast they are delivered; and how fast a bare client sends the same."""
    lab.all_ready()
    drive = partial(_pent_up, lab, events, endpoints)
    return lab.episode(f"drain {events}", seed, drive, settling=settling(lab) + events / 50)


async def _pent_up(lab: FarmLab, events: int, endpoints: int, rng: random.Random) -> dict[str, Any]:
    clients = Clients(lab, rng)
    urls = good_receivers(lab, endpoints)
    for process in lab.pushers:
        lab.tell(what="fault", name="asked", process=process.name, pid=process.pid, action="term")
        await asyncio.to_thread(process.stop)
    try:
        for n in range(events // WORDS):
            await clients.task(urls[n % len(urls)], Ends.DELIVERED, text=f"{WORDS - 1} 0")
        await _quiet(
            lab, "select count(*) from a2a_tasks_run where status in ('queued', 'running')"
        )
        for process in lab.pushers:
            process.resume()
        await asyncio.to_thread(lab.all_ready)
        begun, before = time.monotonic(), pushers_seconds(lab)
        await _quiet(lab, "select count(*) from a2a_push_pushconfig where active")
        seconds = time.monotonic() - begun
        busy = pushers_seconds(lab) - before
        spent = processor_seconds(os.getpid())
        bare = await _bare(lab, min(10.0, seconds))
        spent = processor_seconds(os.getpid()) - spent
        return {
            "a second": round(events / seconds, 1),
            "ms of a processor each": round(1000 * busy / events, 2),
            "bare httpx a second": round(bare / min(10.0, seconds), 1),
            "its ms each": round(1000 * spent / max(1, bare), 2),
        }
    finally:
        await clients.close()


async def _quiet(lab: FarmLab, query: str) -> None:
    """Return when there is none of them."""
    while (await asyncio.to_thread(lab.postgres.execute, query, lab.database))[0][0]:
        await asyncio.sleep(0.1)


async def _bare(lab: FarmLab, seconds: float) -> int:
    """How often one body is posted in these seconds by httpx and nothing around it, a hundred at once."""
    body = lab.rows().deliveries[0].body.encode()
    until, count = time.monotonic() + seconds, 0
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    port = lab.ports["http"]
    async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:

        async def one() -> None:
            nonlocal count
            while time.monotonic() < until:
                url = f"http://127.0.0.1:{port}{BARE}"
                (await client.post(url, content=body)).raise_for_status()
                count += 1

        await asyncio.gather(*(one() for _ in range(100)))
    return count


def pushers_seconds(lab: FarmLab) -> float:
    """Seconds that all pushers have had of a processor."""
    return sum(processor_seconds(process.pid) for process in lab.pushers)


def processor_seconds(pid: int) -> float:
    """Seconds that a process has had of a processor, so far (proc(5))."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


# --- kills ------------------------------------------------------------------------------------


def kill(lab: FarmLab, point: str, action: str, seed: int) -> Episode:
    """One episode: a few tasks at receivers good and bad, and the fault at that point."""
    lab.all_ready()
    return lab.episode(
        f"{point} {action}", seed, partial(_killing, lab, point, action), settling=settling(lab)
    )


async def _killing(lab: FarmLab, point: str, action: str, rng: random.Random) -> dict[str, Any]:
    clients = Clients(lab, rng)
    disabling = point == "webhook.disabling"
    fault = lab.arm(point, action, nth=rng.randint(1, PASSED.get(point, 20)))
    chosen = [18, 23, 36, 1, 18, 22, 27, 19] if not disabling else [23, 18, 23]
    urls = [(WAYS[n].urls(lab.ports)[0], WAYS[n].ends, n) for n in chosen]
    urls += [(url, Ends.DELIVERED, 0) for url in good_receivers(lab, 4)]
    try:
        loads = [
            clients.tasks(url, ends, 1, text=f"{rng.randint(3, 8)} 0.05", way=way)
            for url, ends, way in urls
        ]
        await asyncio.gather(*loads)
        struck = await fault.struck(STRIKING)
        if struck and action == "stop":
            await fault.wake(2 * lab.terms.limit + SLEEP)
        lost = [] if struck else [Violation("lab", f"{point} was never passed", [])]
        return {"violations": lost, "point": point, "action": action}
    finally:
        await clients.close()


# --- outages ----------------------------------------------------------------------------------


def outage(lab: FarmLab, action: str, server: str, seed: int) -> Episode:
    """Webhooks of 1 to 10 MB beside small ones; senders are hurt while a server is away."""
    lab.all_ready()
    name = f"senders {DONE[action]} while {server} restarts"
    drive = partial(_outage, lab, action, server)
    return lab.episode(name, seed, drive, settling=settling(lab))


async def _outage(lab: FarmLab, action: str, server: str, rng: random.Random) -> dict[str, Any]:
    clients = Clients(lab, rng)
    sizes = [f"{rng.randint(2, 18)} 0" for _ in range(8)]
    loads = [
        clients.task(url, Ends.DELIVERED, agent="farm-large", text=text, old=n % 2 == 0)
        for n, (text, url) in enumerate(zip(sizes, good_receivers(lab, 8), strict=True))
    ]
    loads += [clients.task(url, Ends.DELIVERED) for url in good_receivers(lab, 8)]
    going_on = asyncio.gather(*loads)
    try:
        for victim in rng.sample(lab.pushers, len(lab.pushers)):
            await asyncio.sleep(0.5 + rng.random())
            lab.hurt(victim, action)
            async with away(lab, server):
                await asyncio.sleep(2 * rng.random())
            if action == "stop":
                await asyncio.sleep(2 * lab.terms.limit + SLEEP)
                lab.hurt(victim, "cont")
            await asyncio.to_thread(victim.wait_ready)
        await going_on
        return {}
    finally:
        await clients.close()
