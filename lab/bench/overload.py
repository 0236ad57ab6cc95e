"""W2: far more sends at once than one web process can take. Each gets its answer or a clean refusal, and what was accepted ends."""

from __future__ import annotations

import asyncio
import time

import psycopg

from lab.bench import procs
from lab.bench.client import COMPLETED, Post, post, send
from lab.bench.plan import Plan
from lab.bench.targets import OursWorker, Target
from lab.bench.wrk import Metrics

EVERY_SECONDS = 0.1
OPEN = "select count(*) from a2a_tasks_task where state <> 'TASK_STATE_COMPLETED'"
STORED = "select count(*) from a2a_tasks_task"


async def w2(target: Target, plan: Plan) -> Metrics:
    """sends at once to one web process, a connection each: with returnImmediately, and blocking"""
    assert isinstance(target, OursWorker)
    out: Metrics = {}
    for name, immediate in (("ack", True), ("blocking", False)):
        figures = await _burst(target, plan.burst, immediate=immediate)
        out |= {f"{figure}, {plan.burst} {name}": value for figure, value in figures.items()}
    return out


async def _burst(target: OursWorker, count: int, *, immediate: bool) -> Metrics:
    before = _ask(target, STORED)
    rest = procs.memory_kib([target.web_process.pid])
    begun = time.perf_counter()
    sends = asyncio.gather(*(_one(target, immediate=immediate) for _ in range(count)))
    most = rest
    while not sends.done():
        most = max(most, procs.memory_kib([target.web_process.pid]))
        await asyncio.sleep(EVERY_SECONDS)
    seconds = time.perf_counter() - begun
    answers = await sends
    accepted = [it for it in answers if it and it.status == 200 and _right(it, immediate=immediate)]
    refused = [it for it in answers if it and it.status == 503 and b"retry-after" in it.head]
    unfinished = await _wait_settled(target)
    after = _ask(target, STORED)
    return {
        "accepted": len(accepted),
        "refused (503, Retry-After)": len(refused),
        "neither": count - len(accepted) - len(refused),
        "accepted, but there is no task": len(accepted) - (after - before),
        "not completed after a minute": unfinished,
        "s for all answers": seconds,
        "accepted/s": len(accepted) / seconds,
        "slowest refusal s": max((it.seconds for it in refused), default=None),
        "web process, MiB more at most": (most - rest) / 1024,
    }


async def _one(target: OursWorker, *, immediate: bool) -> Post | None:
    try:
        return await post(target.endpoint, send("echo hi", immediate=immediate), 120)
    except OSError:
        return None


def _right(it: Post, *, immediate: bool) -> bool:
    return b'"task"' in it.body and (immediate or COMPLETED.encode() in it.body)


async def _wait_settled(target: OursWorker) -> int:
    """Wait until all tasks are completed, a minute at most; return the number of the others."""
    for _ in range(600):
        left = _ask(target, OPEN)
        if not left:
            return 0
        await asyncio.sleep(EVERY_SECONDS)
    return left


def _ask(target: OursWorker, query: str) -> int:
    with psycopg.connect(target.database, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])
