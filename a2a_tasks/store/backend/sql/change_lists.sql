with input as (
  select i.n, t.context_id, i.run, i.key, i.expected, i.count, i.size
  from unnest(%(n)s::int[], %(task)s::bigint[], %(run)s::bigint[], %(key)b::text[], %(expected)s::bigint[],
    %(count)s::int[], %(size)s::bigint[]) as i(n, task, run, key, expected, count, size)
  join a2a_tasks_task t on t.id = i.task
), changed as (
  update a2a_tasks_conversationlist l set version = i.run, count = i.count, size = i.size, updated_at = statement_timestamp()
  from input i where (l.context_id, l.key, l.version) = (i.context_id, i.key, i.expected) returning i.n, l.id
), added as (
  insert into a2a_tasks_conversationlist (context_id, key, version, count, size)
  select context_id, key, run, count, size from input where expected = 0 order by context_id, key
  on conflict (context_id, key) do nothing returning id, context_id, key, version
), mine as (
  select n, id from changed
  union all
  select i.n, a.id from input i join added a on (a.context_id, a.key, a.version) = (i.context_id, i.key, i.run)
), item as (
  insert into a2a_tasks_conversationitem (list_id, number, value)
  select m.id, e.number, e.value
  from unnest(%(item_n)s::int[], %(numbers)s::int[], %(items)b::text[]) as e(n, number, value) join mine m on m.n = e.n
)
select i.key from input i where not exists (select from mine m where m.n = i.n)
