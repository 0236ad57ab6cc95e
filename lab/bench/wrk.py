"""Request/response load by `wrk`; a figure counts only when every answer was right."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import uuid
from pathlib import Path

from lab.bench.procs import say
from lab.bench.targets import Cost, Target

SCRIPT = Path(__file__).resolve().parent / "wrk.lua"
Metrics = dict[str, float | None]


def require() -> None:
    """Stop with a remedy when `wrk` is missing."""
    if not shutil.which("wrk"):
        raise SystemExit(
            "S1 and S2 need `wrk` on PATH (Debian, Ubuntu: apt-get install wrk), or leave them out"
        )


async def load(
    target: Target,
    body: str,
    expect: list[str],
    connections: int,
    seconds: int,
    salt: str = "",
) -> Metrics:
    """Post the body as fast as the connections allow. `@ID@` becomes a fresh id; with one salt they are the same again."""
    salt = salt or uuid.uuid4().hex[:8]
    env = {**os.environ, "BODY": body, "EXPECT": "\n".join(expect), "SALT": salt}
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--timeout",
        "30s",
        "-s",
        str(SCRIPT),
    ]
    with Cost(target) as cost:
        process = await asyncio.create_subprocess_exec(
            *command,
            target.endpoint.url,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
    line = next((x for x in out.decode().splitlines() if x.startswith("RESULT ")), None)
    if line is None:
        raise RuntimeError(f"wrk failed: {err.decode()[-300:]}")
    return _metrics(target, json.loads(line.removeprefix("RESULT ")), cost, err.decode())


def _metrics(target: Target, result: dict[str, float], cost: Cost, complaints: str) -> Metrics:
    good, bad = result["requests"] - result["bad"], result["bad"]
    right = good > 0 and not bad
    if bad:
        say(f"{target.name}: {bad:.0f} wrong answers, e.g. {complaints[:200]}")
    return {
        "req/s": good / result["seconds"] if right else None,
        "p50 ms": result["p50"] if right else None,
        "p99 ms": result["p99"] if right else None,
        "errors": bad + result["socket_errors"],
        "server CPU ms/req": 1e3 * cost.server_cpu / good if good else None,
        "client CPU share": cost.client_share,
    }
