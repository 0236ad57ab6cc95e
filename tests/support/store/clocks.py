"""Processes whose clock is wrong, for tests."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.utils import timezone

from a2a_tasks.store import clock

__all__ = ["wrong_clock"]


@contextmanager
def wrong_clock(hours: float) -> Iterator[None]:
    """The clock of this process, which has just begun, is ahead by so many hours; the database's is right."""
    own, now = time.time, timezone.now
    ahead = datetime.timedelta(hours=hours)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: own() + ahead.total_seconds())
        patch.setattr(timezone, "now", lambda: now() + ahead)
        clock.forget()
        yield
    clock.forget()
