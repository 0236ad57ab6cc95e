"""A3: page after page through a million tasks while tasks arrive. Each must be there once; the time of a page is measured.

    python -m lab.bench --scenarios A3                              # with the other scenarios
    python -m lab.bench.walks [--size 1000000] [--database URL]     # alone, with pages and rows

The pages are the admin's, by its own links to the next; of the walk through everything, those of `search/selection.py` that
the admin, the API and the commands share. Meanwhile another connection adds tasks and changes some. A task that a walk missed, or
met twice or out of order, ends the run.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import psycopg

from lab.bench import lists
from lab.bench.lists import browser, fill_database, set_up, settle
from lab.bench.postgres import Server

LIST = "/admin/a2a_tasks/task/"
KEY = re.compile(r'name="_selected_action" value="(\d+)"')
OLDER = re.compile(r'href="(\?[^"]*before=\d+[^"]*)"')
#: Pages of a walk that is not to the end.
PAGES = 200
#: Tasks that arrive a second, each changed once.
ARRIVING = 50
ARRIVE = """
with context as (
  insert into a2a_tasks_context (tenant, owner, agent, public_id, created_at, updated_at)
  values ('acme', 'key:rare', 'demo', gen_random_uuid(), now(), now()) returning id)
insert into a2a_tasks_task (public_id, tenant, owner, agent, context_id, is_task, state, status_at, status_message,
  metadata, memory, last_event, run_token, origin_dialect, created_at)
select gen_random_uuid(), 'acme', 'key:rare', 'demo', id, true, 'TASK_STATE_WORKING', now(), '', '', '', 1, '', 'v10', now()
from context returning id
"""
CHANGE = "update a2a_tasks_task set state = 'TASK_STATE_COMPLETED', status_at = now() where id = %s"

#: A page: its keys, and how the next one is asked for; None = there is none.
Step = tuple[list[int], str | None]


def ask(url: str, size: int) -> dict[str, float | None]:
    """Walk each way; prints pages, rows and times, and returns p50 and p95 in ms."""
    figures = dict[str, float | None]()
    browser().get(LIST)
    settle()
    print("| walk | pages | rows | p50 ms | p95 ms | slowest ms |\n|---|---:|---:|---:|---:|---:|")
    with add_tasks(url):
        for words, query, condition, pages, step in walks(size):
            keys, spent = _walk(step, query, pages)
            _check(words, keys, _top(query, keys), condition, to_the_end=pages is None)
            p50, p95 = statistics.median(spent), lists.p95(spent)
            figures |= {f"{words}, p50 ms": p50, f"{words}, p95 ms": p95}
            row = (words, f"{len(spent):,}", f"{len(keys):,}")
            print(f"| {' | '.join(row)} | {p50:.1f} | {p95:.1f} | {max(spent):.1f} |", flush=True)
    return figures


def walks(size: int) -> Iterator[tuple[str, str, dict[str, Any], int | None, Callable[..., Step]]]:
    """In words, its first question, what is true of all its tasks, how many pages; and how a page is asked for."""
    admin = _Admin()
    rare = {"owner": "key:rare"}
    yield "from the newest", "", {}, PAGES, admin
    yield "from the middle", f"?before={size // 2}", {}, PAGES, admin
    yield "the last 10,000, to the end", "?before=10001", {}, None, admin
    yield "those of a state, to the end", "?before=20001&state=failed", FAILED, None, admin
    yield "a rare owner, to the end", "?owner=key:rare", rare, None, admin
    yield "a rare tenant, to the end", "?tenant=rare-tenant", {"tenant": "rare-tenant"}, None, admin
    yield "words, to the end", "?q=lighthouse+late", WORDS, None, admin
    yield "everything, to the end", "", {}, None, _everything


FAILED = {"state": "TASK_STATE_FAILED"}
#: Both are words of openings.
WORDS = {
    "messages__opening__contains": "lighthouse",
    "messages__opening__regex": r"\mlate",
    "messages__number": 1,
}


class _Admin:
    """The list in the admin, followed by its links."""

    def __init__(self) -> None:
        self._browser = browser()

    def __call__(self, query: str) -> Step:
        answer = self._browser.get(LIST + query)
        if answer.status_code != 200:
            raise SystemExit(f"{query}: {answer.status_code}")
        keys = [int(key) for key in KEY.findall(answer.text)]
        older = OLDER.search(answer.text)
        return keys, unescape(older[1]) if older else None


def _everything(before: str) -> Step:
    from a2a_console.search.selection import Selection, page  # noqa: PLC0415
    from a2a_tasks.models import Task  # noqa: PLC0415 - Django is set up first

    found = page(Task.objects.all(), Selection(), size=50, before=int(before) if before else None)
    return [task.pk for task in found.items], None if found.older is None else str(found.older)


def _walk(
    step: Callable[..., Step], query: str, pages: int | None
) -> tuple[list[int], list[float]]:
    keys, spent, following = list[int](), list[float](), query
    while pages is None or len(spent) < pages:
        begun = time.perf_counter()
        found, older = step(following)
        spent.append(1000 * (time.perf_counter() - begun))
        keys += found
        if older is None:
            break
        following = older
    return keys, spent


def _top(query: str, keys: list[int]) -> int:
    """Return the newest key at the start of the walk: later tasks are on none of its pages."""
    began = re.search(r"before=(\d+)", query)
    return int(began[1]) - 1 if began else keys[0]


def _check(
    words: str, keys: list[int], top: int, condition: dict[str, Any], *, to_the_end: bool
) -> None:
    """Each task that there was when the walk began, once, newest first."""
    from a2a_tasks.models import Task  # noqa: PLC0415 - as above

    rows = Task.objects.filter(**condition, pk__lte=top).order_by("-pk")
    there = list((rows if to_the_end else rows[: len(keys)]).values_list("pk", flat=True))
    if keys != there:
        twice, missed = len(keys) - len(set(keys)), len(set(there) - set(keys))
        raise SystemExit(f"{words}: {missed} missed, {twice} twice, of {len(there)}")


@contextmanager
def add_tasks(url: str) -> Iterator[None]:
    """Tasks arrive, and end."""
    over = threading.Event()
    thread = threading.Thread(target=_arrive, args=(url, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _arrive(url: str, over: threading.Event) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        while not over.wait(1 / ARRIVING):
            made = connection.execute(ARRIVE).fetchone()
            connection.execute(CHANGE, made)


def main() -> int:
    """Fill and walk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--database")
    args = parser.parse_args()
    if args.database:
        set_up(args.database)
        ask(args.database, args.size)
        return 0
    server = Server()
    try:
        ask(fill_database(server, args.size), args.size)
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
