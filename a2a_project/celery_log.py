"""The log of Celery's processes, in the format of the host; where that is JSON, Celery prints nothing else."""

from __future__ import annotations

import logging
from typing import Any

from celery import signals
from celery.apps import beat, worker

from a2a_project.log_format import FORMATS
from a2a_tasks.conf import conf
from a2a_tasks.execution.celery_app import app
from a2a_tasks.telemetry.patient_stream import replace_standard_streams
from a2a_tasks.telemetry.printed_lines import log_printed_lines

__all__ = ["set_up"]


class SilentBeat(beat.Beat):  # type: ignore[misc]
    """Beat without its banner."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "app": app, "quiet": True})


def set_up() -> None:
    """Leave out all that Celery prints, if A2A_LOG_FORMAT is json."""
    if conf.LOG_FORMAT == "json":
        app.conf.worker_redirect_stdouts = False  # the host does it
        app.Beat = SilentBeat
        worker.safe_say = _ignore
        signals.celeryd_init.connect(_on_worker)


def _ignore(*_: Any) -> None:
    pass


def _on_worker(instance: Any, **_: Any) -> None:
    """Log Celery's first warnings as well, and leave out its banner."""
    log_printed_lines()
    instance.quiet = True


@signals.after_setup_logger.connect  # type: ignore[untyped-decorator]
@signals.after_setup_task_logger.connect  # type: ignore[untyped-decorator]
def _on_logging(logger: logging.Logger, **_: Any) -> None:
    """Write the lines of Celery's handlers as the host writes its own."""
    for handler in logger.handlers:
        handler.setFormatter(FORMATS[conf.LOG_FORMAT]())
    log_printed_lines()
    replace_standard_streams()
