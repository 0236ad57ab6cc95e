"""Our host over gRPC beside itself over JSON-RPC: one store, one worker, a process for each binding."""

from __future__ import annotations

import asyncio
import sys

from bench import procs, wrk
from bench.client import COMPLETED, echo, post, rpc, send
from bench.plan import Plan
from bench.procs import Child
from bench.rpc_client import chunks
from bench.targets import OursRpc, Target
from bench.wrk import Metrics

__all__ = ["g1"]

#: Processes of clients, and chunks of the stream.
CLIENTS, STREAM = 2, 5_000


async def _calls(address: str, task: str, seconds: float) -> float:
    command = ["-m", "bench.rpc_client", address, task, str(16 // CLIENTS), str(seconds)]
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(CLIENTS)
    ]
    said = [(await child.communicate())[0] for child in children]
    return sum(float(text) for text in said)


def _cpu(child: Child) -> float:
    return sum(procs.cpu_seconds({child.pid}).values())


async def g1(target: Target, plan: Plan) -> Metrics:
    """GetTask (16 at once) and one stream of 5,000 chunks: gRPC beside JSON-RPC and SSE, server CPU of its process"""
    assert isinstance(target, OursRpc)
    task = await echo(target.endpoint)
    await chunks(target.address, 10)
    before = _cpu(target.serving)
    calls = await _calls(target.address, task, plan.seconds)
    cpu = (_cpu(target.serving) - before) / (calls * plan.seconds)
    before = _cpu(target.web_process)
    body = rpc("GetTask", {"id": task})
    http = await wrk.load(target, body, [COMPLETED, task], 16, plan.seconds)
    rate = http["req/s"] or 0.0
    http_cpu = (_cpu(target.web_process) - before) / (rate * plan.seconds)
    streamed = await chunks(target.address, STREAM)
    sent = await post(
        target.endpoint, send(f"chunks {STREAM}", streaming=True), plan.stream_timeout
    )
    return {
        "gRPC req/s c=16": calls,
        "JSON-RPC req/s c=16": rate,
        "req/s ratio": calls / rate,
        "gRPC CPU ms/req": cpu * 1e3,
        "JSON-RPC CPU ms/req": http_cpu * 1e3,
        f"gRPC total s N={STREAM}": streamed,
        f"SSE total s N={STREAM}": sent.seconds if len(sent.ids) == STREAM else None,
    }
