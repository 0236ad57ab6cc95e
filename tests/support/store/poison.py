"""Events that the database refuses for a reason no list knows, as with a broken index, while a block lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.db import connection

from a2a_tasks.store.db import run_in_thread

__all__ = ["POISON", "poisonous"]

#: What an event holds that is refused.
POISON = "poison"
POSTGRESQL = """
create function refuse() returns trigger language plpgsql as
  $$ begin raise exception 'poison' using errcode = 'XX000'; end $$;
create trigger poison before insert on a2a_tasks_event for each row
  when (strpos(new.body, 'poison') > 0) execute function refuse()
"""
SQLITE = """
create trigger poison before insert on a2a_tasks_event when instr(new.body, 'poison') > 0
  begin select json('no JSON'); end
"""


@asynccontextmanager
async def poisonous() -> AsyncIterator[None]:
    """Have the database refuse every event with the word POISON."""
    server = connection.vendor == "postgresql"
    await run_in_thread(_execute, POSTGRESQL if server else SQLITE)
    try:
        yield
    finally:
        await run_in_thread(
            _execute, "drop function refuse cascade" if server else "drop trigger poison"
        )


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
