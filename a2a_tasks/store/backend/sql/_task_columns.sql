-- The fields of `StoredTask`, by their names. If the texts have more than `most` bytes in all, they are not read.
t.id as key, t.public_id, t.last_event, c.public_id as context_id, t.state, t.status_at,
  case when s.size <= %(most)s then t.status_message else '' end as status_message, t.metadata, s.size,
  case when s.size <= %(most)s then
    (select array_agg(m.body order by m.number) from a2a_tasks_message m where m.task_id = t.id) end as messages,
  case when s.size <= %(most)s then
    (select array_agg(array[a.artifact_id, a.first_event::text, a.body] order by a.position)
     from a2a_tasks_artifact a where a.task_id = t.id) end as artifacts
