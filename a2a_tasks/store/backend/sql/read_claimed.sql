-- The texts of runs that this process has claimed.
select r.id as key, m.body as input, r.request, t.memory
from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
join a2a_tasks_message m on m.task_id = t.id and m.number = r.input_number
where r.id = any(%(runs)s)
