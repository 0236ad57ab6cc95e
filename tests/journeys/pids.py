"""The processes of agents, as they say in a trace which they are."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.waiting import PATIENCE, eventually

__all__ = ["gone", "pid_of", "pids"]


def pids(trace: Path) -> list[int]:
    """The processes that have carried the agent, the last one last."""
    words = [line.split()[0] for line in trace.read_text().splitlines()] if trace.exists() else []
    return [int(word.removeprefix("pid-")) for word in words]


async def pid_of(trace: Path, attempt: int = 1) -> int:
    """Wait for the process of an attempt."""

    async def look() -> int:
        return pids(trace)[attempt - 1] if len(pids(trace)) >= attempt else 0

    return await eventually(look, f"the process of attempt {attempt}")


def has_gone(pid: int) -> bool:
    """Is there no such process, or only its remains?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def gone(pid: int, seconds: float = PATIENCE) -> None:
    """Wait for the end of a process."""

    async def look() -> bool:
        return has_gone(pid)

    await eventually(look, f"process {pid} going", seconds=seconds)
