"""What a request came to: what its client was told, what it did to the tables, and what the database was asked for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper

from a2a_tasks.models import PARKED, Run, RunStatus
from a2a_tasks.store.db import run_in_thread
from lab.matrix.answers import answer
from lab.matrix.asks import Ask, Named
from tests.support.bindings.client import Client, Response
from tests.support.execution.waiting import until

__all__ = ["Outcome", "Watcher", "rows", "settled"]

#: Counts are made when somebody asks for them, also by reading; the audit log has refusals, now and then.
DERIVED = {"a2a_tasks_tally"} | {f"a2a_tasks_audit{part}" for part in ("entry", "link", "seal")}
#: In statements of the audit log, which is written and sealed behind the requests, and not at each; and in what a new
#: connection is told, which a thread has when it is first needed.
BEHIND = (
    *("a2a_tasks_audit", "pg_snapshot", "_advisory_", "BEGIN", "idle_in_transaction_session"),
    "extract(epoch from clock_timestamp())",
)
UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
Tables = dict[str, frozenset[str]]


@dataclass(frozen=True)
class Outcome:
    """The whole of it. Two that are equal cannot be told apart, neither by the client nor in the tables."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    #: What became of the tables: "nothing", "more" rows, or in which of them rows "changed" that were there.
    effect: str
    #: The statements, without their parameters; not of what was accepted, since an agent ran then.
    asked: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Was it an error?"""
        return self.status != 200 or b'"error":' in self.body


def told(response: Response, named: Named) -> bytes:
    """The body, with a name for each id: first those that the client said itself, then whatever is new in each answer."""
    body = response.body
    for field, value in vars(named).items():
        if value:
            body = body.replace(value.encode(), b"<%s>" % field.encode())
    met: dict[bytes, bytes] = {}
    if response.status == 200 and b'"error":' not in body:
        body = UUID.sub(lambda found: met.setdefault(found[0], b"<new %d>" % len(met)), body)
        body = MOMENT.sub(b"<moment>", body)
    return body


def rows() -> Tables:
    """Every row of every table of ours."""
    names = [name for name in connection.introspection.table_names() if name.startswith("a2a_")]
    found: Tables = {}
    with connection.cursor() as cursor:
        for name in sorted(set(names) - DERIVED):
            cursor.execute(f"select * from {name}")  # noqa: S608 - our own tables
            found[name] = frozenset(map(repr, cursor.fetchall()))
    return found


def _effect(before: Tables, after: Tables) -> str:
    if before == after:
        return "nothing"
    changed = [name for name, rows in after.items() if not before[name] <= rows]
    return f"changed {', '.join(changed)}" if changed else "more"


@contextmanager
def _listening(heard: list[str]) -> Iterator[None]:
    """Write down every statement of every connection of this process."""
    plain: Callable[..., Any] = CursorWrapper.execute

    def execute(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        if not any(mark in sql for mark in BEHIND):
            heard.append(sql)
        return plain(self, sql, params)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CursorWrapper, "execute", execute)
        yield


def _idle() -> bool:
    unfinished = Run.objects.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
    return not unfinished.exclude(round=PARKED).exists()


async def settled() -> bool:
    """Is no run under way or waiting?"""
    return await run_in_thread(_idle)


class Watcher:
    """Asks the host, and looks at the tables after each request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before: Tables = {}

    async def begin(self) -> None:
        """Take the tables as they are."""
        await until(settled)
        self._before = await run_in_thread(rows)

    async def outcome(
        self, slug: str, ask: Ask, headers: Mapping[str, str], named: Named, *, lasts: bool = False
    ) -> Outcome:
        """What comes of a request; `lasts`: of its answer, which does not end by itself, the beginning is enough."""
        heard: list[str] = []
        with _listening(heard):
            response = await answer(self._client, slug, ask, headers, lasts=lasts)
        await until(settled)
        before, self._before = self._before, await run_in_thread(rows)
        body = told(response, named)
        refused = response.status != 200 or b'"error":' in body
        return Outcome(
            response.status,
            tuple(sorted(response.headers)),
            body,
            _effect(before, self._before),
            tuple(heard) if refused else (),
        )
