-- The bytes of a task's messages, artifacts and status message. A growing artifact has those of all pieces since its first.
-- `offset 0` lets the server count once, not at each use.
cross join lateral (
  select coalesce(sum(octet_length(a.body)), 0) as whole, min(a.first_event) filter (where a.body = '') as first
  from a2a_tasks_artifact a where a.task_id = t.id
) a
cross join lateral (
  select a.whole + octet_length(t.status_message)
    + (select coalesce(sum(octet_length(m.body)), 0) from a2a_tasks_message m where m.task_id = t.id)
    + (select coalesce(sum(octet_length(e.body)), 0) from a2a_tasks_event e
       where e.task_id = t.id and e.kind = {artifact} and e.number >= a.first) as size
  offset 0
) s
