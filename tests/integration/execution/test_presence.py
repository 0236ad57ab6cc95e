"""Presence: a process says that it is there, and takes it back; whatever the database does, nobody else minds."""

from __future__ import annotations

import datetime
import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from django.db import connection

from a2a_tasks import process, process_lifetime
from a2a_tasks.agents import registry, versions
from a2a_tasks.agents.declaration import declare
from a2a_tasks.execution import presence
from a2a_tasks.execution.presence import Presence, WorkerLoad
from a2a_tasks.models import Worker, WorkerKind
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.process_lifetime import Lifetime
from a2a_tasks.store import workers
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.versions import announce
from tests import ROOT
from tests.support.execution.host import runner
from tests.support.execution.waiting import eventually, until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture(autouse=True)
def life(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Lifetime:
    """Of a process of the test's own, that beats often."""
    settings.A2A_PRESENCE_SECONDS = 0.05
    made = Lifetime()
    for name in ("on_drain", "on_stop", "is_draining"):
        monkeypatch.setattr(process_lifetime, name, getattr(made, name))
    return made


@pytest.fixture
def here() -> Iterator[Presence]:
    """A presence that has three runs of ten."""
    made = Presence(WorkerKind.WORKER, lambda: WorkerLoad(["agents"], 10, 3))
    made.start()
    yield made
    made.stop()


def row() -> Worker | None:
    return Worker.objects.filter(left_at=None).first()


@pytest.mark.usefixtures("here")
def test_a_process_says_what_it_is_and_how_busy() -> None:
    found = eventually(row)
    assert found is not None
    assert (found.name, found.kind) == (process.name(), "worker")
    assert (found.queues, found.slots, found.running) == (["agents"], 10, 3)
    assert found.agents.keys() == set(registry.slugs())
    assert (found.draining, found.version) == (False, "0.1.0")


def test_it_says_so_again_and_again_and_takes_it_back(here: Presence) -> None:
    first = eventually(row)
    assert first is not None
    eventually(lambda: Worker.objects.filter(seen_at__gt=first.seen_at).exists())
    here.stop()
    eventually(lambda: row() is None)


def test_it_says_at_once_that_it_drains(settings: Any, life: Lifetime) -> None:
    settings.A2A_PRESENCE_SECONDS = 3600.0
    made = Presence(WorkerKind.WEB)
    made.start()
    eventually(row)
    life.begin_drain()
    eventually(lambda: Worker.objects.filter(draining=True).exists())
    made.stop()


def test_what_fails_is_told_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def fail(said: workers.Beat) -> None:
        calls.append(said)
        raise RuntimeError("canary")

    monkeypatch.setattr(workers, "beat", fail)
    # One that has told of no other test's failures.
    fresh = ThrottledLogger(
        logging.getLogger(presence.__name__), "the presence of this process was not reported"
    )
    with caplog.at_level(logging.WARNING), pytest.MonkeyPatch.context() as silence:
        silence.setattr(presence, "_silence", fresh)
        made = Presence(WorkerKind.WEB)
        made.start()
        eventually(lambda: len(calls) > 2)
        monkeypatch.undo()
        eventually(row)
        made.stop()
    assert caplog.text.count("canary") == 1


async def test_the_dead_of_another_day_are_forgotten_when_a_process_begins(life: Lifetime) -> None:
    stale = workers.Beat(
        name="gone:1",
        kind=WorkerKind.WEB,
        host="gone",
        pid=1,
        started_at=datetime.datetime.now(datetime.UTC),
    )
    await run_in_thread(workers.beat, stale)
    await run_in_thread(lambda: Worker.objects.update(seen_at="2026-01-01T00:00:00Z"))
    await presence.begin(WorkerKind.WEB)
    await until(lambda: run_in_thread(row))
    await life.stop()
    await until(lambda: run_in_thread(lambda: row() is None))


async def test_without_a_beat_nothing_is_said(settings: Any, life: Lifetime) -> None:
    settings.A2A_PRESENCE_SECONDS = 0.0
    await presence.begin(WorkerKind.WEB)
    await life.stop()
    assert await run_in_thread(row) is None


async def test_a_runner_tells_its_queues_and_slots() -> None:
    async with runner("night", slots=4) as made:
        assert made.load() == WorkerLoad(["night"], 4, 0)


ENDING = """
import time
import django
django.setup()
from django.conf import settings
settings.DATABASES["default"]["NAME"] = {database!r}
from a2a_project.celery import _on_beat
from a2a_tasks.execution import presence
from a2a_tasks.models import Worker
presence.LAST_SECONDS = 30.0
_on_beat()
until = time.monotonic() + 50
while not Worker.objects.filter(kind="beat").exists() and time.monotonic() < until:
    time.sleep(0.02)
raise SystemExit(0)
"""


@pytest.mark.django_db(transaction=True)
def test_beat_takes_it_back_as_its_interpreter_ends() -> None:
    name = str(connection.settings_dict["NAME"])
    ended = subprocess.run(  # noqa: S603 - words of the test
        [sys.executable, "-c", textwrap.dedent(ENDING.format(database=name))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert Worker.objects.get(kind="beat").left_at is not None
    assert "the presence of this process was not reported" not in ended.stderr


def test_a_pusher_learns_of_announced_agents(agent_far: str) -> None:
    made = Presence(WorkerKind.PUSHER)
    made.start()
    try:
        eventually(lambda: versions.find(agent_far, "2.0"))
    finally:
        made.stop()
        versions.put({})


@pytest.fixture
def agent_far() -> str:
    """An announced agent, by its slug."""
    own = registry.find_own("demo")
    assert own is not None
    text = msgspec.json.encode(msgspec.structs.replace(declare(own), slug="far", version="2.0"))
    return announce(text, environment="adk", host="0.1.0").slug
