-- The tasks that have events, in order, each found by one step in the index of the primary key.
with recursive logged(task_id) as (
  select min(task_id) from a2a_tasks_event where task_id > %s
  union all
  select (select min(e.task_id) from a2a_tasks_event e where e.task_id > logged.task_id)
  from logged where task_id is not null
)
select task_id from logged where task_id is not null limit %s
