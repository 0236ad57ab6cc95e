-- `tenant || ''` prevents the planner from using the list indexes, which begin with the tenant. On a young table, without
-- statistics, it rates them as equal to the unique index, and would read every task of the owner.
select i.n, {_task_columns}
from unnest(%(n)s::int[], %(id)b::text[], %(agent)b::text[], %(owner)b::text[], %(tenant)b::text[],
  %(created_by)b::text[]) as i(n, id, agent, owner, tenant, created_by)
join a2a_tasks_task t
  on t.public_id = i.id and t.agent = i.agent and t.owner = i.owner and t.tenant || '' = i.tenant and t.is_task
  and (i.created_by = '' or t.maker = i.created_by)
join a2a_tasks_context c on c.id = t.context_id
{_task_sizes}
