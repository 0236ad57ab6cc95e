-- Rows that another transaction has locked are skipped: two transactions that wait for each other's rows would deadlock.
-- A request with a trace gets the attempt as `note_attempt` would note it. Readers take the last of two equal members.
with held as (
  select r.id, r.task_id, r.token, r.queue from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.status = 'running' and r.token = any(%(tokens)b::text[]) and t.run_token = r.token
  for update of r, t skip locked
), task as (
  update a2a_tasks_task t set run_token = '' from held h where t.id = h.task_id
)
update a2a_tasks_run r set status = 'queued', token = '', lease_until = null, due_at = clock_timestamp(),
  said = 0, parked_in = '', attempt = r.attempt - case when r.token = any(%(tried)b::text[]) then 0 else 1 end,
  error = r.error || case when r.token = any(%(tried)b::text[]) then
    'Attempt ' || r.attempt || ' on ' || r.worker || ' was stopped with its process.' || chr(10) else '' end,
  request = case when r.request ~ '"trace": ?[[]' then left(r.request, -1) || ',"before":["'
    || left(encode(sha256(convert_to(r.token, 'UTF8')), 'hex'), 16) || '",' || r.attempt || ']}' else r.request end,
  past = {_past_postgresql} from held h where r.id = h.id returning h.token, h.queue
