-- The last round of each waiting share. The recursion steps along an index from one share to the next, so that one of a
-- share's ten thousand rows is read. Neither database does this by itself for "distinct".
with recursive waiting(share) as (
  select min(share) from a2a_tasks_run where status = 'queued'
  union all
  select (select min(r.share) from a2a_tasks_run r where r.status = 'queued' and r.share > w.share)
  from waiting w where w.share is not null
)
select w.share, (select max(r.round) from a2a_tasks_run r
  where r.status = 'queued' and r.queue = %(queue)s and r.share = w.share and r.round < {behind})
from waiting w where w.share is not null limit %(most)s
