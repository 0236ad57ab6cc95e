"""A Celery worker's inside: one event loop in a thread, with the runner on it.

Jobs only wake it, so one worker process carries hundreds of waiting agents, and no broker time-out concerns them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Sequence
from typing import Any

from celery import signals

from a2a_tasks.conf import conf
from a2a_tasks.execution.runner import Runner

__all__ = ["start", "stop", "wake"]

logger = logging.getLogger(__name__)
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_runner: Runner | None = None


def start(queues: Sequence[str] | None = None) -> None:
    """Start the loop and its runner in this process, once."""
    global _loop  # noqa: PLW0603 - one a process
    with _lock:
        if _loop is not None:
            return
        gc.collect()
        gc.freeze()  # what is loaded now stays; searching it again and again costs pauses
        _loop = asyncio.new_event_loop()
        threading.Thread(target=_loop.run_forever, name="runs", daemon=True).start()
        asyncio.run_coroutine_threadsafe(_begin(queues), _loop).result()


async def _begin(queues: Sequence[str] | None) -> None:
    global _runner  # noqa: PLW0603
    _runner = Runner(queues)
    _runner.start()


def wake() -> None:
    """Have the runner look for due runs; starts it where Celery's start signal did not (prefork children)."""
    start()
    if _runner is not None:
        _runner.wake()


def stop() -> None:
    """Drain: no new runs, the drain time for those under way, then hand them back."""
    if _loop is not None and _runner is not None:
        seconds = float(conf.DRAIN_SECONDS)
        draining = asyncio.run_coroutine_threadsafe(_runner.drain(seconds), _loop)
        draining.result(timeout=seconds + 10)


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _on_ready(sender: Any = None, **_: Any) -> None:
    consumer = getattr(sender, "app", None)
    queues = sorted(consumer.amqp.queues.consume_from) if consumer is not None else None
    start(queues)
    logger.info("carrying runs of %s", ", ".join(queues or ["all queues"]))


@signals.worker_shutdown.connect  # type: ignore[untyped-decorator]
def _on_shutdown(**_: Any) -> None:
    stop()
