with held as (
  select id from a2a_tasks_run where status = 'running' and token = any(%(tokens)b::text[]) order by id
  for update{skip}
)
update a2a_tasks_run r set lease_until = clock_timestamp() + make_interval(secs => lease_seconds), company = %(runs_in_process)s
from held where r.id = held.id returning token
