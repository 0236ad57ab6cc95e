"""Our host over gRPC compared with itself over JSON-RPC: one store, one worker, a process for each binding."""

from __future__ import annotations

from statistics import median

from lab.bench import h2load, procs, wrk
from lab.bench.client import COMPLETED, echo, post, rpc, send
from lab.bench.plan import Plan
from lab.bench.procs import Child
from lab.bench.rpc_client import chunks, got, make_request
from lab.bench.targets import OursRpc, Target
from lab.bench.wrk import Metrics

__all__ = ["g1"]

#: GetTask, by one binding and the other: so often, so many seconds.
TURNS, SECONDS = 9, 1
#: Chunks of the stream.
STREAM = 5_000
#: Bytes that each of them has at least, with its ids.
LEAST = 100


def _cpu(child: Child) -> float:
    return sum(procs.cpu_seconds({child.pid}).values())


async def _in_turns(target: OursRpc, task: str) -> Metrics:
    """Short turns, since a machine is faster in one minute than in the next; neighbours are compared."""
    turns = [(await _calls(target, task), await _requests(target, task)) for _ in range(TURNS)]
    calls, requests = [call for call, _ in turns], [request for _, request in turns]
    return {
        "gRPC req/s c=16": median(rate for rate, _ in calls),
        "JSON-RPC req/s c=16": median(rate for rate, _ in requests),
        "req/s ratio": median(call[0] / request[0] for call, request in turns),
        "gRPC CPU ms/req": median(cpu for _, cpu in calls) * 1e3,
        "JSON-RPC CPU ms/req": median(cpu for _, cpu in requests) * 1e3,
    }


async def _calls(target: OursRpc, task: str) -> tuple[float, float]:
    """Calls a second, and CPU seconds of each."""
    request, answer = await got(target.address, task)
    method = f"http://{target.address}/lf.a2a.v1.A2AService/GetTask"
    before = _cpu(target.serving)
    rate, count = await h2load.load(method, request, answer, 16, SECONDS)
    return rate, (_cpu(target.serving) - before) / count


async def _requests(target: OursRpc, task: str) -> tuple[float, float]:
    """Return the rate of GetTask over JSON-RPC, and the server CPU of one request."""
    before = _cpu(target.web_process)
    http = await wrk.load(target, rpc("GetTask", {"id": task}), [COMPLETED, task], 16, SECONDS)
    rate = http["req/s"] or 0.0
    return rate, (_cpu(target.web_process) - before) / (rate * SECONDS)


async def g1(target: Target, plan: Plan) -> Metrics:
    """GetTask (16 at once) and one stream of 5,000 chunks: gRPC beside JSON-RPC and SSE, server CPU of its process"""
    assert isinstance(target, OursRpc)
    task = await echo(target.endpoint)
    await chunks(target.address, 10)
    unary = await _in_turns(target, task)
    official = await chunks(target.address, STREAM)
    before = _cpu(target.serving)
    streaming = f"http://{target.address}/lf.a2a.v1.A2AService/SendStreamingMessage"
    asked = make_request(STREAM).SerializeToString()
    streamed = await h2load.once(streaming, asked, least=STREAM * LEAST)
    stream_cpu = _cpu(target.serving) - before
    before = _cpu(target.web_process)
    sent = await post(
        target.endpoint, send(f"chunks {STREAM}", streaming=True), plan.stream_timeout
    )
    sent_cpu = _cpu(target.web_process) - before
    return {
        **unary,
        f"gRPC total s N={STREAM}": streamed,
        f"gRPC CPU s N={STREAM}": stream_cpu,
        f"gRPC total s N={STREAM}, official client in Python": official,
        f"SSE total s N={STREAM}": sent.seconds if len(sent.ids) == STREAM else None,
        f"SSE CPU s N={STREAM}": sent_cpu,
    }
