-- The events of a task after a number. The body of a message is in a row of its own.
select e.number, e.kind, e.state, e.run, case when e.body = '' then m.body else e.body end
from a2a_tasks_event e
left join a2a_tasks_message m on m.task_id = e.task_id and m.number = e.number and e.body = ''
where e.task_id = %(task)s and e.number > %(number)s order by e.number limit %(limit)s
