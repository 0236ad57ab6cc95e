"""The log of gunicorn's master: it waits for nobody, and its processes get it as it was."""

from __future__ import annotations

import logging
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

from tests import ROOT

LINE = logging.LogRecord("gunicorn.error", logging.INFO, "", 0, "a line", None, None)


@pytest.fixture
def handler() -> Iterator[logging.Handler]:
    logger = logging.getLogger("gunicorn.error")
    logger.addHandler(made := logging.NullHandler())
    yield made
    logger.removeHandler(made)


def load() -> dict[str, Any]:
    """The configuration, as gunicorn reads it at its start and again at SIGHUP."""
    return runpy.run_path(str(ROOT / "deploy" / "gunicorn.conf.py"))


def test_a_process_that_starts_after_sighup_loses_no_line(
    handler: logging.Handler,
) -> None:
    load()["on_starting"](None)
    assert len(handler.filters) == 1
    load()["keep_all_lines"]()
    assert handler.filters == []


def test_a_master_without_standard_error_output_logs_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.__stderr__", None)
    assert load()["is_taken"](LINE)
