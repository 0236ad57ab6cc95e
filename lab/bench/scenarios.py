"""The scenarios. Each measures one target once and returns its figures; rounds and medians are `__main__`'s."""

from __future__ import annotations

import asyncio
import contextlib
import math
import statistics
import time
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

from lab.bench import procs, wrk
from lab.bench.client import COMPLETED, Post, WrongAnswer, call, echo, post, rpc, send
from lab.bench.fill import count_stored
from lab.bench.overload import w2
from lab.bench.plan import Plan
from lab.bench.rpc import g1
from lab.bench.targets import Cost, Target
from lab.bench.waiting import w1
from lab.bench.wrk import Metrics

ECHOED = [COMPLETED, '"artifactId"', '"text":"hi"']


def percentile(values: list[float], q: float) -> float | None:
    """The nearest-rank percentile."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, math.ceil(q * len(ranked)) - 1)] if ranked else None


async def settle(target: Target, limit: float = 15) -> None:
    """Wait until the target is idle, so that its backlog is not charged to what is measured next."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        with Cost(target) as cost:
            await asyncio.sleep(0.5)
        if cost.server_cpu < 0.1 * cost.wall:
            return


async def stream(
    target: Target, text: str, timeout: float, on_first: Callable[[Post], None] | None = None
) -> Post:
    """One SendStreamingMessage, read to its end."""
    return await post(target.endpoint, send(text, streaming=True), timeout, on_first)


async def s1(target: Target, plan: Plan) -> Metrics:
    """blocking SendMessage `echo hi`; `ack` = with returnImmediately, only the acceptance counts"""
    out: Metrics = {}
    body = send("echo hi", message_id="@ID@")
    for connections in (1, 16, 64):
        figures = await wrk.load(target, body, ECHOED, connections, plan.seconds)
        out |= {f"{name} c={connections}": value for name, value in figures.items()}
        await settle(target)
    body = send("echo hi", message_id="@ID@", immediate=True)
    figures = await wrk.load(target, body, ['"contextId"', '"state"'], 16, plan.seconds)
    await settle(target)
    return out | {f"ack {name} c=16": value for name, value in figures.items()}


async def s2(target: Target, plan: Plan) -> Metrics:
    """GetTask of one completed task"""
    task = await echo(target.endpoint)
    figures = await wrk.load(
        target, rpc("GetTask", {"id": task}), [*ECHOED, task], 16, plan.seconds
    )
    return {f"{name} c=16": value for name, value in figures.items()}


async def s3(target: Target, plan: Plan, size: int) -> Metrics:
    """ListTasks with 50 tasks a page: the first and the 20th page"""
    result, _ = await call(target.endpoint, "ListTasks", {"pageSize": 50})
    seen: list[str] = []
    token = ""
    first = await _page_ms(target, plan, token)
    for _ in range(19):
        if len(result["tasks"]) != 50:
            raise WrongAnswer(f"{len(result['tasks'])} tasks on a page")
        seen += [task["id"] for task in result["tasks"]]
        token = result["nextPageToken"]
        result, _ = await call(target.endpoint, "ListTasks", {"pageSize": 50, "pageToken": token})
    if len(set(seen)) != len(seen):
        raise WrongAnswer(f"{len(seen) - len(set(seen))} tasks are on two pages")
    if (total := result.get("totalSize")) != (true := count_stored(target)):
        raise WrongAnswer(f"totalSize is {total}, not {true}")
    return {
        f"page 1 ms N={size}": first,
        f"page 20 ms N={size}": await _page_ms(target, plan, token),
    }


async def _page_ms(target: Target, plan: Plan, token: str) -> float:
    params = {"pageSize": 50} | ({"pageToken": token} if token else {})
    times = [
        (await call(target.endpoint, "ListTasks", params))[1] for _ in range(plan.list_samples + 2)
    ]
    return statistics.median(times[2:]) * 1e3


async def s4(target: Target, plan: Plan, count: int) -> Metrics:
    """SendStreamingMessage of N chunks, one stream at a time; exponent 1 = linear, 2 = quadratic"""
    with Cost(target) as cost:
        it = await stream(target, f"chunks {count}", plan.stream_timeout)
    if not it.ok:
        await settle(target)  # an abandoned stream may still be working
    right = it.ok and it.ids == list(range(count))
    return {
        f"total s N={count}": it.seconds if right else None,
        f"events/s N={count}": count / it.seconds if right else None,
        f"lost N={count}": count - len(set(it.ids)),
        f"out of order or double N={count}": sum(b <= a for a, b in pairwise(it.ids)),
        f"server CPU ms/event N={count}": 1e3 * cost.server_cpu / count,
        f"client CPU share N={count}": cost.client_share,
    }


async def s5(target: Target, plan: Plan) -> Metrics:
    """time to the first event of a new stream, a new connection each"""
    out: Metrics = {}
    for connections, each in plan.first_event:
        figures = await _first_events(target, connections, each)
        out |= {f"{name} c={connections}": value for name, value in figures.items()}
    return out


async def _first_events(target: Target, connections: int, each: int) -> Metrics:
    posts: list[Post] = []

    async def worker() -> None:
        for _ in range(each):
            posts.append(await stream(target, "echo hi", 30))

    with Cost(target) as cost:
        await asyncio.gather(*(worker() for _ in range(connections)))
    times = [(it.t_first - it.t0) * 1e3 for it in posts if it.ok]
    right = len(times) == len(posts)
    return {
        "p50 ms": percentile(times, 0.5) if right else None,
        "p99 ms": percentile(times, 0.99) if right else None,
        "streams/s": len(times) / cost.wall,
        "errors": len(posts) - len(times),
        "client CPU share": cost.client_share,
    }


async def s6(target: Target, plan: Plan) -> Metrics:
    """one task, 500 chunks, 100 subscribers that joined before the first chunk"""
    chunks, subscribers, wait = plan.fan_out
    opened: asyncio.Future[Post] = asyncio.get_running_loop().create_future()
    text = f"chunks {chunks} {wait}"
    own_stream = asyncio.create_task(stream(target, text, plan.stream_timeout, opened.set_result))
    body = rpc("SubscribeToTask", {"id": (await asyncio.wait_for(opened, 20)).task_id()})
    with Cost(target) as cost:
        posts = await asyncio.gather(
            *(post(target.endpoint, body, plan.stream_timeout) for _ in range(subscribers))
        )
    own = await own_stream
    start = min((it.t_chunk for it in [own, *posts] if it.t_chunk), default=0.0)
    seconds = max(it.t_last for it in posts) - start
    complete = sum(it.ok and it.ids == list(range(chunks)) for it in posts)
    late = sum(not 0 < it.t_first <= start for it in posts)
    right = complete == subscribers and not late
    return {
        "all have all s": seconds if right else None,
        "deliveries/s": chunks * subscribers / seconds if right else None,
        "complete subscribers": complete,
        "lost events": sum(chunks - len(set(it.ids)) for it in [own, *posts]),
        "joined late": late,
        "server CPU s": cost.server_cpu,
        "client CPU share": cost.client_share,
    }


async def s7(target: Target, plan: Plan) -> Metrics:
    """idle streams (`sleep`): memory (PSS of all server processes) and OS threads each"""
    count, seconds = plan.idle
    await _first_events(target, 8, 5)  # modules loaded, pools filled
    pids = target.pids()
    memory, threads = procs.memory_kib(pids), procs.threads(pids)
    opened, all_open = 0, asyncio.Event()

    def first(_: Post) -> None:
        nonlocal opened
        opened += 1
        if opened == count:
            all_open.set()

    async def one(i: int) -> Post | None:
        await asyncio.sleep(i / 250)  # 250 new streams a second
        try:
            return await stream(target, f"sleep {seconds}", seconds + 60, first)
        except OSError:
            return None

    t0 = time.perf_counter()
    streams = [asyncio.create_task(one(i)) for i in range(count)]
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(all_open.wait(), seconds - 2)
    opening, full, pids = time.perf_counter() - t0, all_open.is_set(), target.pids()
    more_memory, more_threads = procs.memory_kib(pids) - memory, procs.threads(pids) - threads
    posts = [it for it in await asyncio.gather(*streams) if it and it.ok]
    return {
        "KiB each": more_memory / count if full else None,
        "MiB at rest": memory / 1024,
        "threads at rest": threads,
        "threads more": more_threads if full else None,
        "s to open all": opening if full else None,
        "finished": len(posts),
        "end late by s, p99": percentile([it.seconds - seconds for it in posts], 0.99),
    }


Scenario = Callable[[Target, Plan], Coroutine[Any, Any, Metrics]]
#: Those without a size of their own; S3 and S4 are driven size by size.
PLAIN: dict[str, Scenario] = {
    "S1": s1,
    "S2": s2,
    "S5": s5,
    "S6": s6,
    "S7": s7,
    "W1": w1,
    "W2": w2,
    "G1": g1,
}
TITLES = {
    name: " ".join((function.__doc__ or "").split())
    for name, function in {**PLAIN, "S3": s3, "S4": s4}.items()
}
#: Of this host alone, asked in this process: the pages of operators.
CONSOLE = {
    "A1": "The admin's list of a million tasks: every filter, search and page.",
    "A2": "The dashboard, when a million tasks have ended in the past week.",
    "A3": "Page after page of the list, to the end, while tasks arrive.",
}
TITLES |= CONSOLE
