import pytest
from a2a_tasks.store import append as ap, runs as rn
from tests.store.test_races import *  # noqa

@pytest.fixture(autouse=True)
def patched(monkeypatch):
    h = """
with held as (select id from a2a_tasks_run where status = 'running' and token = any(%s::text[]) order by id for update)
update a2a_tasks_run r set lease_until = clock_timestamp() + make_interval(secs => lease_seconds) from held
where r.id = held.id returning r.token"""
    monkeypatch.setattr(rn, "HEARTBEAT", h)
    old = ap.APPEND
    i = old.index("), run as ("); j = old.index("), dropped as (")
    new = old[:i] + """), ending as (
  select r.id, h.ended, h.error from a2a_tasks_run r join held h on r.id = h.run
  where h.ended is not null order by r.id for update of r
), run as (
  update a2a_tasks_run r set status = e.ended, error = e.error, token = '', lease_until = null,
    ended_at = clock_timestamp()
  from ending e where r.id = e.id
""" + old[j:]
    monkeypatch.setattr(ap, "APPEND", new)
