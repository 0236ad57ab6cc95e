-- The steps of turns. If the results have more than `most` bytes in all, none is read.
select s.task_id, s.input_number, s.name, case when sum(octet_length(s.result)) over () <= %(most)s then s.result end as result,
  sum(octet_length(s.result)) over () as size
from unnest(%(task)s::bigint[], %(number)s::int[]) as i(task, number)
join a2a_tasks_step s on s.task_id = i.task and s.input_number = i.number
