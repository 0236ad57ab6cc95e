"""The watchdog of a real worker. Lines that fall silent and brokers that are away: tests/campaigns/outages/test_watchdog.py."""

from __future__ import annotations

import os

import pytest

from a2a_project.celery import app
from tests.support.execution.watched import NAME, QUEUE, ask, carried, watched


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
def test_a_worker_that_consumes_nothing_though_connected_ends_for_another_to_begin() -> None:
    with watched(os.environ["CELERY_BROKER_URL"], 1) as worker:
        ask("echo hello", "heard")
        assert carried("heard").attempt == 1
        for queue in (QUEUE, f"watchdog.{NAME}"):
            app.control.cancel_consumer(queue, destination=[NAME], reply=True, timeout=10)
        assert worker.process.wait(30) == 1
        assert "connecting anew" in worker.log
        assert "this worker ends" in worker.log
