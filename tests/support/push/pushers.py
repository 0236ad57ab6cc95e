"""Real workers of the queue of webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.processes import Child, python
from tests.support.procfile import worker_arguments

__all__ = ["pusher"]

#: Receivers are on this machine; a lease ends after 7 seconds, and nothing is found by looking.
ENVIRON = {
    "A2A_WEBHOOK_ALLOW_PRIVATE": "1",
    "A2A_WEBHOOK_ALLOW_HTTP": "1",
    "A2A_WEBHOOK_SECONDS": "1",
    "A2A_POLL_SECONDS": "60",
    "A2A_DRAIN_SECONDS": "0.5",
}


@contextmanager
def pusher(number: int = 1, **environ: str) -> Iterator[Child]:
    """A worker that sends, as `make stack` starts it."""
    arguments = worker_arguments("pusher", f"pusher{number}")
    with python(arguments, {**ENVIRON, **environ}) as child:
        child.wait_for(" ready.")
        yield child
