"""The sealer: what is written is sealed a moment later, by whichever process runs agents."""

from __future__ import annotations

import asyncio
import logging

import pytest

from a2a_tasks.audit import Action
from a2a_tasks.execution import sealer
from a2a_tasks.execution.sealer import Sealer
from a2a_tasks.models import AuditLink
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store import audit
from a2a_tasks.store.db import run_in_thread
from tests.support.execution.waiting import until

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("empty_audit_log"),
]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every few milliseconds."""
    monkeypatch.setattr(sealer, "EVERY", 0.01)


async def sealed(count: int) -> bool:
    return await run_in_thread(AuditLink.objects.count) == count


async def test_seals_what_is_written() -> None:
    made = Sealer()
    await run_in_thread(audit.note, Action.KEY_CREATE, "x")
    await until(lambda: sealed(1))
    await run_in_thread(audit.note, Action.KEY_CREATE, "y")
    await until(lambda: sealed(2))
    await made.close()


async def test_seals_once_more_when_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealer, "EVERY", 3600.0)
    made = Sealer()
    await run_in_thread(audit.note, Action.KEY_CREATE, "x")
    await made.close()
    assert await sealed(1)


async def test_a_failure_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail() -> int:
        loop.call_soon_threadsafe(failed.set)
        raise RuntimeError("canary")

    # One that has told of no other test's failures.
    fresh = ThrottledLogger(logging.getLogger(sealer.__name__), "the audit log was not sealed")
    with caplog.at_level(logging.WARNING), pytest.MonkeyPatch.context() as outage:
        outage.setattr(sealer, "_outage", fresh)
        monkeypatch.setattr(sealer, "seal", fail)
        made = Sealer()
        await asyncio.wait_for(failed.wait(), 10)
        monkeypatch.undo()
        await run_in_thread(audit.note, Action.KEY_CREATE, "x")
        await until(lambda: sealed(1))
        await made.close()
    assert "canary" in caplog.text
