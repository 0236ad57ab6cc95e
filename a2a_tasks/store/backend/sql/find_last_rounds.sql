-- The last round of each waiting quota key (column `share`). The recursion steps along an index from one key to the next, so
-- that one of a key's ten thousand rows is read. Neither database does this by itself for "distinct".
with recursive waiting(quota_key) as (
  select min(share) from a2a_tasks_run where status = 'queued'
  union all
  select (select min(r.share) from a2a_tasks_run r where r.status = 'queued' and r.share > w.quota_key)
  from waiting w where w.quota_key is not null
)
select w.quota_key, (select max(r.round) from a2a_tasks_run r
  where r.status = 'queued' and r.queue = %(queue)s and r.share = w.quota_key and r.round < {behind})
from waiting w where w.quota_key is not null limit %(most)s
