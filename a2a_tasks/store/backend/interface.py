"""The functions that each database implements in its own way, and the choice between them.

`postgres` has statements in SQL, each one transaction for many callers. `portable` has equal functions by the ORM, one
row at a time; it serves SQLite. Except for migrations, no code outside `store/backend` depends on the kind of database.
One contract suite checks both: tests/integration/store runs on both databases, and test_twins.py compares their rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from django.db import connection

from a2a_tasks.caller import OwnerScope
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.store.backend import call_news, portable, postgres
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

    #: Maximum number of concurrent writers; None = the number in the settings.
    max_threads: int | None
    #: True if there is an index of the words at the beginning of tasks.
    has_word_index: bool
    #: The end of a SELECT that prevents deletion of its row until the transaction ends, but allows other uses.
    key_share: str

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

    def hand_back_unlocked(
        self, tokens: Collection[str], tried: Collection[str]
    ) -> list[tuple[str, str]]:
        """Queue runs again, except those that another transaction has locked. Returns (token, queue) of each."""

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

    def read_clock(self) -> float:
        """Return seconds since the epoch, by the clock shared by all processes."""

    def find_call_news(self, recent: datetime.timedelta, after: int) -> list[call_news.Row]:
        """Return what has happened to open calls in the last time (`call_news`).

        `after`: the key of the call up to which the last look has come; 0 = all.
        """

    def shift_waits(self, seconds: float) -> None:
        """Move the ends of the waits of parked runs after a jump of this process's clock, if it is the database's."""

    def lock_number(self, number: int, *, wait: bool) -> bool:
        """Take the lock with this number until the transaction ends. False: another transaction has it."""

    def read_snapshot(self, edge: str) -> int:
        """Return the oldest transaction under way ("xmin"), or the next one to begin ("xmax")."""

    def unlock_audit(self) -> AbstractContextManager[None]:
        """Allow changes and deletions in the audit log within a transaction."""

    def count_audit_triggers(self) -> int:
        """Return the number of enabled triggers of the audit log."""

    def may_write(self) -> bool:
        """Return whether the host's role may add rows to all tables, and change those outside of the audit log."""

    def limit_statements(self, seconds: float) -> None:
        """Limit each statement of the open transaction to this time, if the database supports it."""

    def update_rows(
        self, table: str, columns: Sequence[Any], values: list[list[Any]], *, keys: int = 1
    ) -> None:
        """Write values, one list for each column, into the rows whose keys are in the first `keys` lists."""

    def filter_keys(self, statement: str, keys: list[int]) -> list[int]:
        """Return those of the keys that a statement of PostgreSQL selects; other databases return all of them."""


def backend() -> Backend:
    """Return the functions for the database of this process."""
    return postgres if connection.vendor == "postgresql" else portable
