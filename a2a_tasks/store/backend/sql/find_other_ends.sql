-- With `limit`, each task is looked up by its key, also by a plan that was made when there were few.
select i.id, t.last_event from unnest(%s::bigint[], %s::int[]) as i(id, known)
left join lateral (select last_event from a2a_tasks_task where id = i.id limit 1) t on true
where t.last_event is distinct from i.known
