"""Keeping the leases of the runs in this process's hands, and noticing which are gone.

The heartbeats come from a thread of their own, so that a busy loop does not lose its leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping

from a2a_tasks.conf import conf
from a2a_tasks.execution.carried import Carried
from a2a_tasks.outages import Outage
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import runs
from a2a_tasks.store.hop import hang_up, in_thread

__all__ = ["Leases"]

_silence = Outage(logging.getLogger(__name__), "no heartbeat")


class Leases:
    """Extends the leases of the carried runs (by their numbers), and calls `lost`, in the loop, with those that are gone.

    Make it in the loop of the runs, then `start`. `lost` may be told of one more than once, and too late.
    """

    def __init__(self, carried: Mapping[int, Carried], lost: Callable[[Carried], None]) -> None:
        self._carried, self._lost = carried, lost
        self._loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        #: By token: runs that are to be given back when the database answers. None = its agent was never begun.
        self.owed: dict[str, Carried | None] = {}

    def start(self) -> None:
        """Begin to beat and to watch."""
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        self._watch()

    def stop(self) -> None:
        """Extend none any more."""
        self._stopped.set()

    def give_back(self, token: str, carried: Carried | None = None) -> None:
        """Queue the run again once its agent has stopped and the database answers. The process lives: it is no death."""
        self.owed[token] = carried

    def _beat(self) -> None:
        """The heartbeat thread: extend every lease; tell of those that are gone.

        It also looks between two beats, so that a cancel nobody has hinted at is seen within A2A_POLL_SECONDS. A look
        that takes long, because the database is far away, does not put off the beat.
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
            hang_up()

    @staticmethod
    def _connect() -> None:
        """Have a connection before there are leases to keep: it may take longer than they last."""
        with contextlib.suppress(Overloaded):
            in_thread(lambda: None)

    @staticmethod
    def _pause(beats_at: float) -> float:
        return max(0.0, min(beats_at - time.monotonic(), float(conf.POLL_SECONDS)))

    def _look(self, *, beats: bool) -> None:
        held = {c.assignment.token: c for c in list(self._carried.values())}
        asked = time.monotonic()
        try:
            self._give_back()
            alive = self._extend(held, beats=beats)
        except Exception as fault:  # noqa: BLE001 - the thread must outlive whatever it is
            _silence.count(fault.__cause__ or fault)
            return
        for token in alive & held.keys():
            held[token].heard = asked
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for token in held.keys() - alive:
                self._loop.call_soon_threadsafe(self._lost, held[token])

    def _extend(self, held: Mapping[str, Carried], *, beats: bool) -> set[str]:
        """Extend the leases, or between two beats those that the last one missed; returns the tokens that still hold."""
        asked, beat = time.monotonic(), float(conf.BEAT_SECONDS)
        due = [token for token, c in held.items() if beats or asked - c.extended > beat]
        extended = in_thread(runs.heartbeat, due, carrying=len(held)) if due else set()
        self._note(held, extended, asked)
        left = [carried.assignment.run for token, carried in held.items() if token not in extended]
        alive = in_thread(runs.holding, left) if left else set()
        for token in alive.intersection(
            due
        ):  # somebody holds its row; the others' next beat does not wait for that
            now = time.monotonic()
            if now < asked + beat / 2 and in_thread(
                runs.heartbeat_locked, token, carrying=len(held)
            ):
                self._note(held, {token}, now)
        return extended | alive

    @staticmethod
    def _note(held: Mapping[str, Carried], extended: set[str], asked: float) -> None:
        for token in extended & held.keys():
            held[token].extended = asked

    def _give_back(self) -> None:
        owed = [
            (token, carried)
            for token, carried in list(self.owed.items())
            if carried is None or self._carried.get(carried.assignment.run) is not carried
        ]
        if owed:
            tried = [token for token, carried in owed if carried is not None and carried.acted]
            in_thread(runs.hand_back, [token for token, _ in owed], tried=tried)
            carriers = [carried.assignment for _, carried in owed if carried and not carried.acted]
            in_thread(runs.take_back_deaths, {one.run: one.attempt for one in carriers})
            for token, _ in owed:
                del self.owed[token]

    def _watch(self) -> None:
        """Stop what the database has said nothing of for so long that others may have it.

        What must not be begun again goes on: stopped, it could only fail, and nobody else carries it.
        """
        for carried in list(self._carried.values()):
            if carried.is_unknown and not carried.ending and not carried.acted:
                self.give_back(carried.assignment.token, carried)
                self._lost(carried)
        if not self._stopped.is_set():
            self._loop.call_later(float(conf.BEAT_SECONDS) / 2, self._watch)
