with input as (select * from {given})
{_write_tasks}
select k.n, k.key, r.id, k.behind from keyed k join run r on r.task_id = k.key order by k.n
