-- A task and its run are locked together or not at all: a cancellation holds the task and waits for its runs, so a claim
-- must not wait for a task while it holds a run. Each row gets a token of its own.
-- Waiting runs are read agent by agent: those of agents that are not wanted now are not read at all, however many wait.
-- The recursion steps along an index from one agent to the next.
-- An orphan is a run that was due for a while and not claimed, while no process that has its agent was seen.
-- `statement_timestamp` can be searched by an index; `clock_timestamp` cannot.
-- Rows are locked in the order of their turns, and no more than are claimed: another claim finds the others. They are
-- looked up by an array: of a join the planner expects so many rows that it may read the whole table of tasks.
-- Texts of more than `small` bytes are left for their runs to read.
-- It claims from one queue: for several queues at once PostgreSQL sorts all due runs, or searches all runs in the table.
with recursive waiting(agent) as (
  select min(r.agent) from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s and {quarantine}
  union all
  select (select min(r.agent) from a2a_tasks_run r
    where r.status = 'queued' and r.queue = %(queue)s and {quarantine} and r.agent > w.agent)
  from waiting w where w.agent is not null
), wanted as (
  select w.agent, w.agent = any(%(agents)s) as hosted from waiting w
  where w.agent = any(%(agents)s) or %(orphans)s and w.agent <> all(%(known)s)
    and (select r.due_at from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s and {_is_of_agent}
      and {quarantine} order by r.agent, r.round, r.id limit 1) < clock_timestamp() - make_interval(secs => %(orphan)s)
    and not exists (select from a2a_tasks_worker o where o.seen_at > statement_timestamp() - make_interval(secs => %(unseen)s)
      and o.queues ? %(queue)s and o.agents ? w.agent)
), heads as (
  select w.*, d.* from wanted w cross join lateral (
    select r.{first} as first_place, r.id as first_id {_waiting_runs} order by r.agent, r.{first}, r.id limit 1
  ) d order by first_place, first_id limit %(limit)s + %(spare)s
), candidates as (
  select d.id from heads w cross join lateral (
    select r.id {_waiting_runs} order by r.agent, r.{first}, r.id limit 2 * %(limit)s + %(spare)s
  ) d
), due as (
  select r.id, r.task_id, r.round, r.due_at, r.input_number,
    %(mark)s || replace(gen_random_uuid()::text, '-', '') as token,
    t.state = any(%(ended)s) as ended, r.started_at is not null as begun_before,
    octet_length(t.memory) + octet_length(r.request) as size
  from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.id = any(array(select c.id from candidates c)) and r.status = 'queued' and r.round <= %(last_round)s
  order by r.{first}, r.id limit %(limit)s
  for update of r, t skip locked
), fit as (
  select s.*, case when s.bytes > %(small)s then s.bytes else 0 end as unread from (
    select d.*, d.size + octet_length(m.body) as bytes,
      sum(d.size + octet_length(m.body)) over (order by d.round, d.id) - d.size - octet_length(m.body) as before
    from due d join a2a_tasks_message m on m.task_id = d.task_id and m.number = d.input_number
  ) s where s.before < %(most)s
), task as (
  update a2a_tasks_task t set run_token = d.token, batches = 0 from fit d where t.id = d.task_id and not d.ended
  returning t.*
), run as (
  update a2a_tasks_run r set status = case when d.ended then 'dropped' else 'running' end,
    attempt = r.attempt + case when d.ended then 0 else 1 end,
    token = case when d.ended then '' else d.token end, worker = %(worker)s, lease_seconds = %(lease)s,
    lease_until = case when d.ended then null else clock_timestamp() + make_interval(secs => %(lease)s) end,
    started_at = case when d.ended then null else clock_timestamp() end,
    ended_at = case when d.ended then clock_timestamp() end, company = %(runs_in_process)s + (select count(*) from fit)
  from fit d where r.id = d.id
  returning r.id, r.task_id, r.token, r.attempt, r.input_number, r.request, r.share, r.round, r.shared_deaths, r.longest_life,
    r.ordered_in, r.parked_in, r.said, d.begun_before, d.bytes, d.unread
)
select r.id as key, r.token, r.attempt, t.id as task, t.tenant, t.owner, t.agent, t.public_id as task_id,
  c.public_id as context_id, t.state, t.is_task, t.last_event, r.input_number, r.bytes, r.unread,
  case when r.unread = 0 then m.body else '' end as input, case when r.unread = 0 then r.request else '' end as request,
  case when r.unread = 0 then t.memory else '' end as memory,
  r.share as quota_key, r.shared_deaths, r.longest_life, r.ordered_in is not null as ordered, r.parked_in, r.said, r.begun_before,
  (select array_agg(array[a.artifact_id, a.position::text, (a.body = '')::text] order by a.position)
   from a2a_tasks_artifact a where a.task_id = t.id) as artifacts
from run r join task t on t.id = r.task_id join a2a_tasks_context c on c.id = t.context_id
join a2a_tasks_message m on m.task_id = t.id and m.number = r.input_number
order by r.round, r.id
