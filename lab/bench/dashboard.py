"""A2: the time of the dashboard with a million tasks of the past week, of which four in five have ended.

`python -m lab.bench --scenarios A2`. The database is that of A1, with its tasks brought into the week. Server time in this process, without network.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import psycopg

from lab.bench.lists import TIMES, browser, staff

#: All of them ended within 6.9 days, at the same pace; they took up to 97 seconds.
SPREAD = """
update a2a_tasks_task set status_at = now() - (%(size)s - id) * %(pace)s * interval '1 second',
  created_at = now() - (%(size)s - id) * %(pace)s * interval '1 second' - (1 + id %% 97) * interval '1 second'
"""
SPAN_SECONDS = 6.9 * 86400


def spread(url: str, size: int) -> None:
    """Bring the tasks into the week."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SPREAD, {"size": size, "pace": SPAN_SECONDS / size})
        connection.execute("vacuum full analyze a2a_tasks_task")
        connection.execute("vacuum a2a_tasks_task")


def ask() -> dict[str, float | None]:
    """Look at each period: as the first one, again while it is kept, and as a tenant's staff."""
    from a2a_console.statistics import counts, reports  # noqa: PLC0415 - Django is set up first

    client, tenants_staff, medians = browser(), staff("acme"), dict[str, float | None]()
    for name in counts.PERIODS:
        path = f"/admin/statistics/?period={name}"
        medians[f"{name}, first, ms"] = _median(partial(client.get, path), reports.forget)
        medians[f"{name}, kept, ms"] = _median(partial(client.get, path))
        medians[f"{name}, first of a tenant's staff, ms"] = _median(
            partial(tenants_staff.get, path), reports.forget
        )
    return medians


def _median(look: Callable[[], object], before: Callable[[], object] = int) -> float:
    spent = []
    for _ in range(TIMES):
        before()
        begun = time.perf_counter()
        look()
        spent.append(1000 * (time.perf_counter() - begun))
    return statistics.median(spent)
