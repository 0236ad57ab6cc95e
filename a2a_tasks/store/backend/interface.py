"""The functions that each database implements in its own way, and the choice between them.

`postgres` has statements in SQL, each one transaction for many callers. `portable` does the same by the ORM, a row at a
time; it serves SQLite. Nothing outside `store/backend` asks which database there is, but for migrations. One contract
suite holds both: tests/integration/store runs on both databases, and test_twins.py compares their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from django.db import connection

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Run
from a2a_tasks.protocol.lifecycle import Recorded
from a2a_tasks.store.backend import portable, postgres
from a2a_tasks.store.records import (
    Batch,
    ClaimedRun,
    LogPosition,
    NewTask,
    StepResult,
    StoredTask,
    WantedRuns,
)

__all__ = ["Backend", "backend"]


class Backend(Protocol):
    """The functions of a database. All of them run in the calling thread; each is one transaction, or joins an open one."""

    #: Threads that may write at once; None = as many as the settings say.
    max_threads: int | None
    #: Does it have an index of the words that tasks begin with?
    has_word_index: bool
    #: The end of a SELECT that keeps its row from being deleted before the transaction ends, while others may use it.
    key_share: str

    def insert_tasks(self, news: Sequence[NewTask]) -> list[tuple[int, int]]:
        """Write new tasks with their context, message, event 1 and run. Returns the keys of task and run of each.

        Raises IntegrityError if an owner already has a task of that id; then nothing was written.
        """

    def append_batches(self, batches: Sequence[Batch]) -> list[int | None]:
        """Write the batches of runs that still hold their tasks. Returns the number of each one's last event, else None.

        Raises ConversationChanged if one of them changes what another run has changed; then nothing was written.
        """

    def claim_runs(self, wanted: WantedRuns, limit: int) -> list[ClaimedRun]:
        """Take up to `limit` due runs, and hold their tasks for them."""

    def lock_agent(self, agent: str) -> None:
        """Let one process at a time count the runs of an agent, until the transaction ends."""

    def extend_leases(self, tokens: Collection[str], carrying: int) -> set[str]:
        """Extend the leases of these tokens, as far as no other transaction has locked the run. Returns the tokens."""

    def extend_locked_lease(self, token: str, carrying: int) -> bool:
        """Extend one lease, and wait a moment for a transaction that has locked the run. False: it took too long."""

    def hand_back_unlocked(
        self, tokens: Collection[str], tried: Collection[str]
    ) -> list[tuple[str, str]]:
        """Queue runs again, as far as no other transaction has locked them. Returns (token, queue) of each."""

    def save_as_queued(self, runs: Sequence[Run]) -> None:
        """Queue locked runs again, with the deaths that were counted in them."""

    def keep_steps(self, steps: Sequence[StepResult]) -> set[int]:
        """Write results of steps once, as far as the run still holds its task. Returns the positions of those written.

        Of several steps, those whose task another transaction has locked are left out. A single one waits, and raises
        IntegrityError if the step was kept before with another result.
        """

    def find_tasks(
        self, keys: Sequence[tuple[OwnerScope, str]]
    ) -> dict[tuple[OwnerScope, str], StoredTask]:
        """Read tasks by scope and public id, each as it was at one event number."""

    def find_task(self, task: int) -> StoredTask | None:
        """Read the task with this primary key, as it was at one event number."""

    def read_events(self, task: int, number: int, limit: int, max_bytes: int) -> list[Recorded]:
        """Read events of a task after a number; none after `max_bytes`, but always the first."""

    def read_events_of_each(
        self, after: Sequence[tuple[int, int]], limit: int, max_bytes: int
    ) -> list[list[Recorded]]:
        """As `read_events`, for (task, number) each."""

    def read_pages(
        self, pages: Sequence[LogPosition], *, limit: int, max_bytes: int, longest: int
    ) -> list[list[Recorded]]:
        """Read the events of these pages; the body of an event is empty if it has more than `longest` bytes."""

    def read_clock(self) -> float:
        """Return seconds since the epoch, by the clock that all processes share."""

    def lock_number(self, number: int, *, wait: bool) -> bool:
        """Take the lock of that number until the transaction ends. False: another transaction has it."""

    def read_snapshot(self, edge: str) -> int:
        """Return the oldest transaction under way ("xmin"), or the next one to begin ("xmax")."""

    def unlock_audit(self) -> AbstractContextManager[None]:
        """Let rows of the audit log be changed and deleted, inside a transaction."""

    def count_audit_triggers(self) -> int:
        """Count the triggers of the audit log that are switched on."""

    def limit_statements(self, seconds: float) -> None:
        """Let each statement of the open transaction take so many seconds at most, where the database can."""

    def update_rows(self, table: str, columns: Sequence[Any], values: list[list[Any]]) -> None:
        """Write values, a list for each column, into rows that are named by the first column."""

    def filter_keys(self, statement: str, keys: list[int]) -> list[int]:
        """Return those of the keys that a statement of PostgreSQL selects; elsewhere all of them."""


def backend() -> Backend:
    """Return the functions for the database of this process."""
    return postgres if connection.vendor == "postgresql" else portable
