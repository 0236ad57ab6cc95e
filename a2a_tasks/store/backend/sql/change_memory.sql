-- A change counts if its key has the version that the turn has read. A transaction that waited for a row reads its version
-- anew. Of two runs that begin one key at once, `on conflict` lets the first one win. Returns the changes that do not count.
with input as (
  select i.n, t.context_id, i.run, i.key, i.expected, i.kind, i.value
  from unnest(%(n)s::int[], %(task)s::bigint[], %(run)s::bigint[], %(key)b::text[], %(expected)s::bigint[],
    %(kind)b::text[], %(value)b::bytea[]) as i(n, task, run, key, expected, kind, value)
  join a2a_tasks_task t on t.id = i.task
), removed as (
  delete from a2a_tasks_conversationmemory m using input i
  where (m.context_id, m.key, m.version) = (i.context_id, i.key, i.expected) and i.value is null returning i.n
), changed as (
  update a2a_tasks_conversationmemory m set version = i.run, kind = i.kind, value = i.value, updated_at = statement_timestamp()
  from input i
  where (m.context_id, m.key, m.version) = (i.context_id, i.key, i.expected) and i.value is not null returning i.n
), added as (
  insert into a2a_tasks_conversationmemory (context_id, key, version, kind, value)
  select context_id, key, run, kind, value from input where expected = 0 and value is not null order by context_id, key
  on conflict (context_id, key) do nothing returning context_id, key, version
)
select i.key from input i
where not exists (select from removed r where r.n = i.n) and not exists (select from changed c where c.n = i.n)
  and not exists (select from added a where (a.context_id, a.key, a.version) = (i.context_id, i.key, i.run))
