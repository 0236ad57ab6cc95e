-- Rows are locked in the order of their ids.
with held as (
  select p.id, i.digest from unnest(%(task)s::text[], %(before)s::text[], %(digest)s::text[]) as i(task, before, digest)
  join a2a_tasks_chatprefix p on p.digest = i.before join a2a_tasks_task t on t.id = p.task_id and t.public_id = i.task
  order by p.id for update of p
)
update a2a_tasks_chatprefix p set digest = h.digest, updated_at = statement_timestamp() from held h where p.id = h.id
returning p.id
