-- The agents of which runs wait in a queue, by the same steps.
with recursive waiting(agent) as (
  select agent from (select r.agent from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s
    order by r.agent limit 1) first
  union all
  select (select r.agent from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s and r.agent > w.agent
    order by r.agent limit 1)
  from waiting w where w.agent is not null
)
select agent from waiting where agent is not null
