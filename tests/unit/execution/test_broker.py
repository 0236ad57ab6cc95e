"""A broker that is away."""

from __future__ import annotations

import io
import logging
import logging.config

import pytest
from celery.beat import ScheduleEntry, Scheduler
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


def test_beat_writes_a_line_for_each_job_that_it_cannot_send() -> None:
    said = io.StringIO()
    config = make_logging("INFO")
    config["handlers"]["stderr"]["stream"] = said
    entry = ScheduleEntry("rescue", "a2a_tasks.execution.jobs.rescue_lost_runs", app=app)
    scheduler = Scheduler(app, schedule={}, lazy=True)
    with app.connection_for_write(url="redis://127.0.0.1:1") as connection:
        try:
            logging.config.dictConfig(config)
            scheduler.apply_entry(entry, producer=app.amqp.Producer(connection, auto_declare=False))
        finally:
            logging.config.dictConfig(settings.LOGGING)
    told = [
        line for line in said.getvalue().splitlines() if " celery.beat " in line or line[0] == " "
    ]
    assert len(told) == 2
    assert "ERROR celery.beat Couldn't apply scheduled task rescue: Error 111" in told[1]
