"""A broker that is away."""

from __future__ import annotations

import io
import logging
import logging.config
from collections.abc import Iterator
from typing import NoReturn

import pytest
from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule
from django.conf import settings

from a2a_project.log_format import make_logging
from a2a_tasks.execution.celery_app import app

#: More than the tries after which a worker would end by default.
TRIES = 200


class Enough(Exception):
    """There were enough tries."""


def test_a_worker_never_stops_trying_to_reach_it() -> None:
    tries: list[Exception] = []

    def count(fault: Exception, _: float) -> None:
        tries.append(fault)
        if len(tries) == TRIES:
            raise Enough

    with app.connection_for_read(url="redis://127.0.0.1:1") as connection, pytest.raises(Enough):
        connection.ensure_connection(
            count, app.conf.broker_connection_max_retries, interval_start=0, interval_step=0
        )


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """What this process writes to its log."""
    written = io.StringIO()
    config = make_logging("INFO")
    config["handlers"]["stderr"]["stream"] = written
    try:
        logging.config.dictConfig(config)
        yield written
    finally:
        logging.config.dictConfig(settings.LOGGING)


def test_beat_writes_a_line_for_each_job_that_it_cannot_send(said: io.StringIO) -> None:
    entry = ScheduleEntry("rescue", "a2a_tasks.execution.jobs.rescue_lost_runs", app=app)
    scheduler = Scheduler(app, schedule={}, lazy=True)
    with app.connection_for_write(url="redis://127.0.0.1:1") as connection:
        scheduler.apply_entry(entry, producer=app.amqp.Producer(connection, auto_declare=False))
    told = [
        line for line in said.getvalue().splitlines() if " celery.beat " in line or line[0] == " "
    ]
    assert len(told) == 2
    error = "ERROR celery.beat Message Error: Couldn't apply scheduled task rescue: Error 111"
    assert error in told[1]


def test_another_fault_of_beat_keeps_its_words_and_its_trace(said: io.StringIO) -> None:
    class Broken(schedule):  # type: ignore[misc]
        def is_due(self, last_run_at: object) -> NoReturn:
            raise ValueError("no such day")

    entry = ScheduleEntry("purge", "purge", schedule=Broken(60), app=app)
    Scheduler(app, schedule={"purge": entry}, lazy=True).tick()
    first, *trace = said.getvalue().splitlines()
    assert "ERROR celery.beat beat: Cannot calculate the next run of 'purge'" in first
    assert trace[0] == "  Traceback (most recent call last):"
    assert trace[-1] == "  ValueError: no such day"
