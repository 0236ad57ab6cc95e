"""Unary calls by `h2load` (nghttp2), as `wrk` makes requests: a client in Python would be what is measured."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile

__all__ = ["load", "once", "require"]

_RATE = re.compile(r"finished in [^,]+, ([\d.]+) req/s")
_TOOK = re.compile(r"finished in ([\d.]+)(us|ms|s),")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_DONE = re.compile(r"(\d+) total, \d+ started, (\d+) done, (\d+) succeeded")
_DATA = re.compile(r"\((\d+)\) data")
#: A message has its length before it.
PREFIX = 5


def require() -> None:
    """Stop with a remedy when it is missing."""
    if not shutil.which("h2load"):
        raise SystemExit(
            "G1 needs `h2load` on PATH (Debian, Ubuntu: apt-get install nghttp2-client), or leave it out"
        )


async def load(
    url: str, message: bytes, answer: bytes, connections: int, seconds: int
) -> tuple[float, float]:
    """Calls a second, and how many there were, with one under way on each connection.

    RuntimeError when not every answer had the length of the right one.
    """
    out = await _run(url, message, f"-c{connections}", "-m1", f"-D{seconds}")
    rate, done, data = _RATE.search(out), _DONE.search(out), _DATA.search(out)
    if not (rate and done and data) or done[2] != done[3]:
        raise RuntimeError(f"h2load failed: {out[-300:]}")
    answers, rest = divmod(int(data[1]), PREFIX + len(answer))
    # At the end of the time a few are on their way.
    if rest or not 0 <= answers - int(done[2]) <= connections:
        raise RuntimeError(f"{done[2]} calls, {data[1]} bytes: not every answer was right")
    return float(rate[1]), float(done[2])


async def once(url: str, message: bytes, least: int) -> float:
    """Seconds of one call whose answers have at least so many bytes. RuntimeError when they have fewer."""
    out = await _run(url, message, "-c1", "-n1")
    took, data = _TOOK.search(out), _DATA.search(out)
    if not (took and data) or int(data[1]) < least:
        raise RuntimeError(f"h2load failed: {out[-300:]}")
    return float(took[1]) * UNITS[took[2]]


async def _run(url: str, message: bytes, *how: str) -> str:
    with tempfile.NamedTemporaryFile() as body:
        body.write(b"\0" + len(message).to_bytes(4) + message)
        body.flush()
        command = ["h2load", *how, "-d", body.name]
        for header in ("content-type: application/grpc", "te: trailers", "a2a-version: 1.0"):
            command += ["-H", header]
        process = await asyncio.create_subprocess_exec(
            *command, url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        return (await process.communicate())[0].decode()
