"""The web processes of gunicorn."""

from __future__ import annotations

import runpy
import time

from uvicorn import Config, Server

from tests import ROOT


async def test_a_process_whose_clock_was_set_back_still_tells_the_master_that_it_lives() -> None:
    told: list[float] = []

    async def notify() -> None:
        told.append(time.monotonic())

    options = runpy.run_path(str(ROOT / "deploy" / "gunicorn.conf.py"))["Worker"].CONFIG_KWARGS
    server = Server(Config(notify, **{"timeout_notify": 15, **options}, callback_notify=notify))
    server.last_notified = time.time() + 3600
    await server.on_tick(0)
    assert told
