"""The hot functions, which each database implements in its own way, and the choice between them.

`postgres` has statements in SQL, each one transaction for many callers. `portable` has equal functions by the ORM, one
row at a time; it serves SQLite. `server` has what SQLite has not; all else is written once, for both.
One contract suite checks both: tests/integration/store runs on both databases, and test_twins.py compares their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from django.db import connection

from a2a_tasks.caller import OwnerScope
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.store.backend import portable, postgres
from a2a_tasks.store.records import (
    Batch,
    ChatMove,
    ClaimedRun,
    FoundChat,
    InsertedTask,
    LogPosition,
    NewTask,
    StepResult,
    StoredTask,
    WantedRuns,
)

__all__ = ["Backend", "backend"]


class Backend(Protocol):
    """The functions of a database. All of them run in the calling thread; each is one transaction, or joins an open one."""

    def insert_tasks(self, news: Sequence[NewTask]) -> list[InsertedTask | None]:
        """Write new tasks with their contexts, messages, events 1, runs and places; None = its place was taken.

        Raises IntegrityError if an owner already has a task of that id; then nothing was written.
        """

    def find_chats(
        self, asked: Sequence[tuple[OwnerScope, Collection[str]]]
    ) -> list[list[FoundChat]]:
        """Return, for each scope and its digests, the newest conversation that has come to each, in the order of these."""

    def move_chats(self, moves: Sequence[ChatMove]) -> None:
        """Move those conversations on that are still at their digests."""

    def append_batches(self, batches: Sequence[Batch]) -> list[int | None]:
        """Write the batches whose runs still hold their tasks; return for each the last event's number, else None.

        Raises ConversationChanged if one of them changes what another run has changed; then nothing was written.
        """

    def claim_runs(self, wanted: WantedRuns, limit: int) -> list[ClaimedRun]:
        """Claim up to `limit` due runs, and give their tokens to their tasks."""

    def extend_leases(self, tokens: Collection[str], runs_in_process: int) -> set[str]:
        """Extend the leases of these tokens, except of runs that another transaction has locked. Returns the tokens."""

    def extend_locked_lease(self, token: str, runs_in_process: int) -> bool:
        """Extend one lease, and wait a moment for a transaction that has locked the run. False: it took too long."""

    def keep_steps(self, steps: Sequence[StepResult]) -> set[int]:
        """Write results of steps once, if their runs still hold their tasks. Returns the positions of the written ones.

        If there are several steps, those whose task another transaction has locked are skipped. A single step waits,
        and raises StepConflict, an IntegrityError, if another result is stored already.
        """

    def read_steps(self, turns: Collection[tuple[int, int]]) -> list[tuple[int, int, str, str]]:
        """Return (task, number, name, result) of the steps of these turns, each the number of a message of a task."""

    def find_tasks(
        self, keys: Sequence[tuple[OwnerScope, str]]
    ) -> dict[tuple[OwnerScope, str], StoredTask]:
        """Return tasks by scope and public id, each consistent at one event number; large ones without texts."""

    def find_task(self, task: int) -> StoredTask | None:
        """Return the task with this primary key, consistent at one event number."""

    def find_other_ends(self, known: Mapping[int, int]) -> dict[int, int | None]:
        """Return the ends of those of these logs that do not end at the known number; None = the task is gone."""

    def read_events(self, task: int, number: int, limit: int, max_bytes: int) -> list[LogEvent]:
        """Return the events of a task after a number: up to `max_bytes` in all, but at least one."""

    def read_pages(
        self, pages: Sequence[LogPosition], *, limit: int, max_bytes: int, longest: int
    ) -> list[list[LogEvent]]:
        """Return the events of these pages; the body of an event is empty if it has more than `longest` bytes."""


def backend() -> Backend:
    """Return the functions for the database of this process."""
    return postgres if connection.vendor == "postgresql" else portable
