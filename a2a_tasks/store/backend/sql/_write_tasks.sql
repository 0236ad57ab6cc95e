, context as (
  insert into a2a_tasks_context (tenant, owner, agent, public_id)
  select distinct tenant, owner, agent, context_id from input order by context_id, agent, owner, tenant
  on conflict (public_id, agent, owner, tenant) do update set updated_at = statement_timestamp()
  returning id, tenant, owner, agent, public_id
), task as (
  insert into a2a_tasks_task (public_id, tenant, owner, maker, agent, context_id, is_task, state, status_at,
    status_message, metadata, memory, last_event, run_token, origin_dialect, origin_binding)
  select i.id, i.tenant, i.owner, i.created_by, i.agent, c.id, i.is_task, 'TASK_STATE_SUBMITTED', i.at, '', i.metadata, '', 1,
    i.token, i.dialect, i.binding
  from input i join context c
    on (c.public_id, c.agent, c.owner, c.tenant) = (i.context_id, i.agent, i.owner, i.tenant)
  order by i.n
  returning id, public_id, tenant, owner, agent, context_id
), keyed as (
  select i.*, t.id as key, case when i.ordered then t.context_id end as ordered_in,
    i.ordered and i.token = '' and (row_number() over (partition by t.context_id, i.ordered order by i.n) > 1
      or exists (select from a2a_tasks_run e where e.ordered_in = t.context_id and e.status in ('queued', 'running')))
      as behind
  from input i join task t
    on (t.public_id, t.agent, t.owner, t.tenant) = (i.id, i.agent, i.owner, i.tenant)
), message as (
  insert into a2a_tasks_message (task_id, number, role, body, opening)
  select key, 1, role, message, opening from keyed
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, body) select key, 1, 1, '', '' from keyed
), joining as (
  select j.queue, j.quota_key, 1 + greatest(
    coalesce((select r.round from a2a_tasks_run r where r.status = 'queued' and r.queue = j.queue and r.round < {behind}
      and not {_is_behind_another}
      order by r.round, r.id limit 1), 0),
    coalesce((select max(r.round) from a2a_tasks_run r
      where r.status = 'queued' and r.queue = j.queue and r.share = j.quota_key and r.round < {behind}), 0)) as round
  from (select distinct queue, quota_key from keyed where token = '' and not behind) j
), audit as (
  insert into a2a_tasks_auditentry (tenant, agent, actor, action, object, outcome, detail, request)
  select tenant, agent, actor, 'task.send', id, 'done', detail, request_id from keyed
), run as (
  insert into a2a_tasks_run (task_id, input_number, queue, agent, share, round, status, attempt, token, worker,
    lease_seconds, lease_until, started_at, request, error, ordered_in)
  select key, 1, k.queue, k.agent, k.quota_key, case when k.behind then {behind} else
    coalesce(j.round - 1 + row_number() over (partition by k.behind, j.queue, j.quota_key order by n), 0) end,
    case when token = '' then 'queued' else 'running' end,
    case when token = '' then 0 else 1 end, token, worker, lease,
    case when token <> '' then clock_timestamp() + make_interval(secs => lease) end,
    case when token <> '' then clock_timestamp() end, request, '', k.ordered_in
  from keyed k left join joining j on k.token = '' and (j.queue, j.quota_key) = (k.queue, k.quota_key)
  order by k.n
  returning task_id, id
)
