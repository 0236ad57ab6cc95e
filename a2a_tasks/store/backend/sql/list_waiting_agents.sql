-- The agents of which runs wait in a queue, by the same steps.
with recursive waiting(agent) as (
  select min(agent) from a2a_tasks_run where status = 'queued' and queue = %(queue)s
  union all
  select (select min(r.agent) from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s and r.agent > w.agent)
  from waiting w where w.agent is not null
)
select agent from waiting where agent is not null
