"""The ledger of the lab's agents and the history of its clients are on one clock."""

from __future__ import annotations

import time

import pytest

from lab.faultlab.agents_app import ledger


def test_the_ledger_follows_the_wall_clock_after_it_was_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "_ahead", ledger.ahead())
    monotonic = time.monotonic
    # As if the machine's wall clock had been set back by an hour since this process began.
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 3600)

    assert abs(ledger.now() - time.time()) < 0.1
