-- `|| ''` prevents the planner from beginning with the tasks of the owner, as it would on a young table.
-- A digest is of one caller; the few newest come first, since the planner would read and sort all that begin alike.
select i.n, found.* from unnest(%(n)s::int[], %(digest)s::text[], %(tenant)s::text[], %(agent)s::text[],
  %(owner)s::text[], %(created_by)s::text[]) as i(n, digest, tenant, agent, owner, created_by)
cross join lateral (
  select p.id, p.digest, t.public_id, c.public_id, t.state, p.number,
    p.updated_at > statement_timestamp() - make_interval(secs => %(seconds)s)
  from (select * from a2a_tasks_chatprefix where digest = i.digest order by updated_at desc, id desc limit 10) p
  join a2a_tasks_task t on t.id = p.task_id join a2a_tasks_context c on c.id = t.context_id
  where t.tenant || '' = i.tenant and t.agent || '' = i.agent and t.owner || '' = i.owner
    and (i.created_by = '' or t.maker = i.created_by)
  order by p.updated_at desc, p.id desc limit 1
) found
order by i.n
