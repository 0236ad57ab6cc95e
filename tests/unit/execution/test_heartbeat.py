"""The heartbeat file: touched as long as the event loop turns, and a disk that refuses it stops nothing."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from a2a_tasks import process_lifetime
from a2a_tasks.execution import heartbeat
from a2a_tasks.process_lifetime import Lifetime
from tests.support.execution.waiting import until


@pytest.fixture
def file(tmp_path: Path, settings: Any) -> Path:
    """The file, which is not there yet."""
    settings.A2A_HEARTBEAT_FILE = str(tmp_path / "heartbeat")
    return tmp_path / "heartbeat"


async def test_it_is_touched_again_and_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lifetime = Lifetime()
    monkeypatch.setattr(process_lifetime, "on_stop", lifetime.on_stop)
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    await heartbeat.begin()
    for _ in range(2):
        await until(lambda: file.exists() and file.stat().st_mtime > 1)
        os.utime(file, (1, 1))
    await lifetime.stop()


def test_a_file_that_cannot_be_written_is_only_logged(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.rmdir()
    with caplog.at_level(logging.WARNING):
        heartbeat.touch()
    assert "the heartbeat file was not touched" in caplog.text


async def test_without_a_file_nothing_is_begun(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_HEARTBEAT_FILE = ""
    monkeypatch.setattr(heartbeat, "_for_ever", None)
    await heartbeat.begin()
