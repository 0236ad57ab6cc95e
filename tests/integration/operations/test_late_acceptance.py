"""A message that was accepted late, or whose acceptance nobody heard of: its run starts all the same, and once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from a2a_tasks.agents import Turn
from a2a_tasks.execution import dispatch
from a2a_tasks.models import Run, RunStatus
from a2a_tasks.operations import accept_message
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import accept as accept_store
from a2a_tasks.store import replies
from a2a_tasks.store.backend import sessions
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import Accepted, NewTask, PreclaimedLease
from a2a_tasks.store.replies import reply
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until

# In a transaction of the test the store works in the thread of the loop.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]


async def asks(turn: Turn) -> AsyncIterator[Any]:
    """Ask first; then end, unless an attempt has died."""
    yield "done" if turn.text == "yes" else turn.ask("what?")


@pytest.fixture
async def alice(settings: Any) -> AsyncIterator[Client]:
    settings.A2A_RUNS, settings.A2A_POLL_SECONDS = "local", 0.1
    with playing(asks, after_crash="fail") as agent:
        async with hosting():
            yield Client(agent)


class Stall:
    """Holds a function of the store after its commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *places: tuple[Any, str]) -> None:
        self.committed, self.go_on = threading.Event(), threading.Event()
        self._monkeypatch, self._places = monkeypatch, places

    @contextlib.contextmanager
    def hold(self) -> Any:
        """Hold what is written in this block."""
        with self._monkeypatch.context() as patch:
            for module, name in self._places:
                patch.setattr(module, name, self._wait)
            try:
                yield
            finally:
                self.go_on.set()

    def _wait(self, point: str) -> None:
        if point in {"call.answered", "accept.committed"}:
            self.committed.set()
            self.go_on.wait(30)


@pytest.fixture
def stall(monkeypatch: pytest.MonkeyPatch) -> Stall:
    return Stall(monkeypatch, (replies, "failpoint"), (accept_store, "failpoint"))


def newest() -> tuple[str, int, int]:
    """How the newest run stands: its status, its attempts and its deaths."""
    run = Run.objects.latest("pk")
    return run.status, run.attempt, run.deaths + run.shared_deaths


async def ended_at_once() -> None:
    """The newest run ends, in its first attempt."""
    await until(lambda: run_in_thread(lambda: Run.objects.latest("pk").ended_at is not None))
    assert await run_in_thread(newest) == (RunStatus.ENDED, 1, 0)


@pytest.mark.parametrize("answers", [True, False])
async def test_one_that_takes_longer_than_a_statement_may_is_told(
    alice: Client, stall: Stall, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    monkeypatch.setattr(sessions, "SILENCE_SECONDS", 0.05)
    text, ids = ("yes", {"task_id": (await alice.send()).id}) if answers else ("hello", {})
    with stall.hold(), override_settings(A2A_DATABASE_SECONDS=0.5):
        sending = asyncio.ensure_future(alice.begin(text, **ids))
        assert await asyncio.to_thread(stall.committed.wait, 30)
        with pytest.raises(Overloaded):  # so much time passes
            await run_in_thread(stall.go_on.wait, 30)
        assert not sending.done()
    task = await sending
    assert task.id == ids.get("task_id", task.id)
    await ended_at_once()


@pytest.mark.parametrize("answers", [True, False])
async def test_the_run_of_one_whose_caller_has_left_starts(
    alice: Client, stall: Stall, *, answers: bool
) -> None:
    text, ids = ("yes", {"task_id": (await alice.send()).id}) if answers else ("hello", {})
    with stall.hold():
        sending = asyncio.ensure_future(alice.begin(text, **ids))
        assert await asyncio.to_thread(stall.committed.wait, 30)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    await ended_at_once()


async def test_the_run_of_one_whose_outcome_nobody_knows_is_given_back(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await alice.send()

    def lose(new: NewTask) -> Accepted:
        reply(new)
        raise Overloaded.away(undone=False)

    with monkeypatch.context() as patch:
        patch.setattr(accept_message, "reply", lose)
        with pytest.raises(Overloaded):
            await alice.send("yes", task_id=task.id)
    await ended_at_once()
    assert (await alice.get(task.id)).status.state is TaskState.COMPLETED


async def test_a_run_whose_lease_may_have_ended_meanwhile_is_given_back(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    preclaim: Callable[..., PreclaimedLease | None] = dispatch.preclaim
    task = await alice.send()
    leases = dispatch._runner()._leases
    give_back = leases.give_back

    def long_ago(*wanted: Any) -> Any:
        lease = preclaim(*wanted)
        return lease and replace(lease, requested_at=time.monotonic() - 3600)

    def note(token: str) -> None:
        given.append(token)
        give_back(token)

    monkeypatch.setattr(dispatch, "preclaim", long_ago)
    monkeypatch.setattr(leases, "give_back", note)
    assert (await alice.send("yes", task_id=task.id)).status.state is TaskState.COMPLETED
    assert len(given) == 1
    await ended_at_once()
