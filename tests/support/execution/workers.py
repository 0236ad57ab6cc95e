"""Workers of a test's own, on a queue of its own, with leases that end soon after their process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from a2a_tasks.management.commands import stack
from tests.support.processes import Child, python

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
    """Run one as `manage.py stack` does, of that queue alone, ready to take jobs, for as long as the block lasts."""
    _, *arguments = stack.workers(number)[-1].command
    arguments[arguments.index("-A") + 1] = "a2a_project"
    arguments += ["-Q", queue]
    if name:
        arguments[arguments.index("-n") + 1] = name
    with python(arguments, environ) as child:
        child.wait_for(" ready.")
        yield child
