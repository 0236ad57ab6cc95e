-- A batch is written only if the task row still has the run's token. Runs are locked in the order of their ids, as by the
-- heartbeat.
with batch as (
  select * from {given}
), held as (
  update a2a_tasks_task t set last_event = t.last_event + b.count, batches = t.batches + 1,
    state = coalesce(b.state, t.state), status_at = coalesce(b.at, t.status_at),
    status_message = coalesce(b.status_message, t.status_message),
    status_text = coalesce(b.status_text, t.status_text),
    memory = coalesce(b.memory, t.memory), is_task = t.is_task or b.reveal,
    run_token = case when b.ended is null then t.run_token else '' end
  from batch b where t.id = b.task and t.run_token = b.token and b.token <> '' and t.batches = coalesce(b.after, t.batches)
  returning b.n, b.run, b.ended, b.error, b.ends_task, t.id, t.last_event, t.last_event - b.count as base
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, run, body)
  select h.id, h.base + e.i, e.kind, e.state, h.run, e.body
  from unnest(%(event_n)s::int[], %(event_i)s::int[], %(kinds)s::smallint[], %(states)b::text[],
    %(bodies)b::text[]) as e(n, i, kind, state, body) join held h on h.n = e.n
), message as (
  insert into a2a_tasks_message (task_id, number, role, body)
  select h.id, h.base + e.i, 'ROLE_AGENT', e.body
  from unnest(%(event_n)s::int[], %(event_i)s::int[], %(kinds)s::smallint[], %(bodies)b::text[])
    as e(n, i, kind, body) join held h on h.n = e.n
  where e.kind = 4
), artifact as (
  insert into a2a_tasks_artifact (task_id, position, artifact_id, first_event, body)
  select h.id, a.position, a.artifact_id, h.base + 1 + a.start, a.body
  from unnest(%(artifact_n)s::int[], %(positions)s::int[], %(artifact_ids)b::text[], %(starts)s::int[],
    %(artifacts)b::text[]) as a(n, position, artifact_id, start, body) join held h on h.n = a.n
  on conflict (task_id, position) do update set first_event = excluded.first_event, body = excluded.body
), ending as (
  select r.id, h.ended, h.error from a2a_tasks_run r join held h on r.id = h.run
  where h.ended is not null order by r.id for update of r
), run as (
  update a2a_tasks_run r set status = e.ended, error = r.error || e.error, token = '', lease_until = null,
    ended_at = clock_timestamp()
  from ending e where r.id = e.id
), dropped as (
  update a2a_tasks_run r set status = 'dropped', ended_at = clock_timestamp()
  from held h where r.task_id = h.id and h.ends_task and r.status = 'queued'
)
select h.n, h.last_event from held h
