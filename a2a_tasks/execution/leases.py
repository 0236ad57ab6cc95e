"""Extending the leases of this process's runs, and noticing lost leases.

A thread of its own sends the heartbeats, so that a busy event loop does not lose its leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping

from a2a_tasks.conf import conf
from a2a_tasks.execution.active_run import ActiveRun
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store import runs
from a2a_tasks.store.db import close_connections, run_here

__all__ = ["Leases"]

_silence = ThrottledLogger(logging.getLogger(__name__), "no heartbeat")


class Leases:
    """The leases of the active runs (by number); it calls `lost`, in the event loop, with each run that lost its lease.

    It must be made in the loop of the runs, then started. `lost` may be called twice for a run, or after its end.
    """

    def __init__(self, active: Mapping[int, ActiveRun], lost: Callable[[ActiveRun], None]) -> None:
        self._active, self._lost = active, lost
        self._loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        #: Runs to give back when the database answers, by token. None = the agent was never started.
        self.owed: dict[str, ActiveRun | None] = {}

    def start(self) -> None:
        """Start the heartbeats and the watch."""
        self._heart.start()
        self._watch()

    def stop(self) -> None:
        """Stop extending leases."""
        self._stopped.set()

    def give_back(self, token: str, active: ActiveRun | None = None) -> None:
        """Queue the run again once its agent has stopped and the database answers; this does not count as a death."""
        self.owed[token] = active

    def _beat(self) -> None:
        """Run the heartbeat thread: extend every lease, and report the lost ones.

        It also queries between two beats, so that a cancel without a hint is noticed within A2A_POLL_SECONDS. A slow
        query, because the database is far away, does not delay the beat.
        """
        try:
            self._connect()
            beats_at = time.monotonic() + float(conf.BEAT_SECONDS)
            while not self._stopped.wait(self._pause(beats_at)):
                beats = time.monotonic() >= beats_at
                if beats:
                    beats_at = time.monotonic() + float(conf.BEAT_SECONDS)
                self._look(beats=beats)
        finally:
            close_connections()

    @staticmethod
    def _connect() -> None:
        """Connect before there are leases to renew: connecting may take longer than a lease."""
        try:
            run_here(lambda: None)
        except Exception as fault:  # noqa: BLE001 - the thread must survive any failure
            _silence.warning(fault.__cause__ or fault)

    @staticmethod
    def _pause(beats_at: float) -> float:
        return max(0.0, min(beats_at - time.monotonic(), float(conf.POLL_SECONDS)))

    def _look(self, *, beats: bool) -> None:
        active = {one.run.token: one for one in list(self._active.values())}
        began = time.monotonic()
        try:
            self._give_back()
            alive = self._extend(active, beats=beats)
        except Exception as fault:  # noqa: BLE001 - the thread must survive any failure
            _silence.warning(fault.__cause__ or fault)
            return
        for token in alive & active.keys():
            active[token].confirmed = began
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for token in active.keys() - alive:
                self._loop.call_soon_threadsafe(self._miss, active[token])

    def _miss(self, active: ActiveRun) -> None:
        """Report a run without a valid lease as lost, unless it may have given up its lease by itself."""
        if not active.parking:
            self._lost(active)

    def _extend(self, active: Mapping[str, ActiveRun], *, beats: bool) -> set[str]:
        """Extend the leases, or between two beats those that the last one missed; return the tokens of valid leases."""
        began, beat = time.monotonic(), float(conf.BEAT_SECONDS)
        due = [token for token, one in active.items() if beats or began - one.extended > beat]
        extended = run_here(runs.heartbeat, due, runs_in_process=len(active)) if due else set()
        self._note(active, extended, began)
        left = [one.run.key for token, one in active.items() if token not in extended]
        alive = run_here(runs.find_held_tokens, left) if left else set()
        for token in alive.intersection(due):
            # Another transaction has locked the row; the next beat of the other leases must not wait for it.
            now = time.monotonic()
            if now < began + beat / 2 and run_here(
                runs.heartbeat_locked, token, runs_in_process=len(active)
            ):
                self._note(active, {token}, now)
        return extended | alive

    @staticmethod
    def _note(active: Mapping[str, ActiveRun], extended: set[str], began: float) -> None:
        for token in extended & active.keys():
            active[token].extended = began

    def _give_back(self) -> None:
        owed = [
            (token, one)
            for token, one in list(self.owed.items())
            if one is None or self._active.get(one.run.key) is not one
        ]
        if owed:
            tried = [token for token, one in owed if one is not None and one.acted]
            run_here(runs.hand_back, [token for token, _ in owed], tried=tried)
            carriers = [one.run for _, one in owed if one and not one.acted]
            run_here(runs.take_back_deaths, {one.key: one.attempt for one in carriers})
            for token, _ in owed:
                del self.owed[token]

    def _watch(self) -> None:
        """Stop runs that other processes may have, because the database has not answered for too long.

        A run that must not be started again goes on: stopped, it could only fail, and no other process executes it.
        """
        for one in list(self._active.values()):
            if one.is_unknown and not one.ending and not one.acted:
                self.give_back(one.run.token, one)
                self._lost(one)
        if not self._stopped.is_set():
            self._loop.call_later(float(conf.BEAT_SECONDS) / 2, self._watch)
