-- One page of `LogPosition` on SQLite.
select e.number, e.kind, e.state, e.run,
  case when length(cast(e.body as blob)) > %s then '' else e.body end
from a2a_tasks_event e
where e.task_id = %s and e.number > %s and {_is_wanted}
order by e.number limit %s
