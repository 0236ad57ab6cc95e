"""What is said to the database while a block lasts, statement by statement, whoever says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db.backends.utils import CursorWrapper

#: Each has a name of its own.
SAVEPOINT = re.compile(r'SAVEPOINT "\w+"')
#: What begins so is not of a request: a thread's connection begins, a transaction begins in a test that is rolled back,
#: the runner looks for runs and holds its own, a process looks now and then at what operators have switched and for
#: bulk jobs.
OTHERS = (
    *(
        "set ",
        "select set_config(",
        "savepoint",
        "release savepoint",
        "with due as",
        "with held as",
    ),
    'select "a2a_tasks_agentswitch"',
    'select "a2a_tasks_agentversion"',
    'select "a2a_tasks_budget"',
    'select %s as "a" from "a2a_tasks_bulkjob"',
    'select "a2a_tasks_run"."token"',
)

__all__ = ["statements"]


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect their texts, without the values."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for cursor in (CursorWrapper, psycopg.Cursor):
            _listen(patch, cursor, said)
        yield said


def _listen(patch: pytest.MonkeyPatch, cursor: Any, said: list[str]) -> None:
    execute = cursor.execute

    def heard(self: Any, sql: Any, *args: Any, **kwargs: Any) -> Any:
        text = SAVEPOINT.sub("SAVEPOINT", str(sql))
        if not text.lstrip().lower().startswith(OTHERS):
            said.append(text)
        return execute(self, sql, *args, **kwargs)

    patch.setattr(cursor, "execute", heard)
