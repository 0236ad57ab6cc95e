"""Workers of a test's own, on a queue of its own, with leases that end soon after their process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.processes import Child, python
from tests.support.procfile import worker_arguments

__all__ = ["SHORT", "own_worker"]

#: Leases that end soon after their process.
SHORT = {
    "A2A_LEASE_SECONDS": "1.5",
    "A2A_BEAT_SECONDS": "0.4",
    "A2A_POLL_SECONDS": "0.3",
    "A2A_DRAIN_SECONDS": "0.5",
}


@contextmanager
def own_worker(
    queue: str, number: int = 2, environ: Mapping[str, str] = SHORT, *, name: str = ""
) -> Iterator[Child]:
    """Run one as `make stack` does, of that queue alone, ready to take jobs, for as long as the block lasts."""
    arguments = worker_arguments("worker", name.removesuffix("@%h") or f"worker{number}")
    with python([*arguments, "-Q", queue], environ) as child:
        child.wait_for(" ready.")
        yield child
