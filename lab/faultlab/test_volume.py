"""The faults of `volume` are over when an episode ends."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from lab.faultlab import volume


async def test_a_worker_that_is_frozen_when_an_episode_ends_is_woken_before_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(volume, "PAUSE", 0.0)
    monkeypatch.setattr(volume, "HURTS", {"workers frozen": volume._freeze})
    hurts: list[tuple[str, str]] = []
    frozen = asyncio.Event()

    def hurt(victim: str, action: str) -> None:
        hurts.append((victim, action))
        frozen.set()

    lab: Any = SimpleNamespace(
        workers=["worker1"],
        hurt=hurt,
        all_ready=lambda: None,
        plan=SimpleNamespace(lease=0.05),
    )
    hurting = asyncio.ensure_future(volume._hurt_again_and_again(lab, random.Random(1), Counter()))
    await frozen.wait()
    hurting.cancel()
    await asyncio.wait([hurting])
    assert hurts == [("worker1", "stop"), ("worker1", "cont")]


async def test_an_episode_fails_if_a_fault_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> None:
        raise OSError("no such process")

    monkeypatch.setattr(volume, "PAUSE", 0.0)
    monkeypatch.setattr(volume, "HURTS", {"broken": broken})
    lab: Any = SimpleNamespace()
    with pytest.raises(OSError, match="no such process"):
        await volume._hurt_again_and_again(lab, random.Random(1), Counter())
