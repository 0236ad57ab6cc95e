-- A transaction that waited for a row reads it again, so that it sees that a token was removed meanwhile. If a run keeps an
-- equal result again, because the outcome of its first try was unknown, this succeeds.
with input as (
  select * from unnest(%(n)s::int[], %(task)s::bigint[], %(token)b::text[], %(input)s::int[], %(name)b::text[],
    %(result)b::text[], %(run)s::bigint[], %(seconds)s::float8[])
    as i(n, task, token, input, name, result, run, seconds)
), held as (
  select t.id, i.n from a2a_tasks_task t join input i on i.task = t.id
  where t.run_token = i.token and i.token <> '' order by t.id for update of t{skip}
), step as (
  insert into a2a_tasks_step (task_id, input_number, name, result, run, seconds)
  select h.id, i.input, i.name, i.result, i.run, i.seconds from held h join input i on i.n = h.n
  on conflict (task_id, input_number, name) do update set result = excluded.result
    where a2a_tasks_step.run = excluded.run and a2a_tasks_step.result = excluded.result
  returning task_id, name
)
select h.n, exists (select from step s join input i on (s.task_id, s.name) = (i.task, i.name) where i.n = h.n) from held h
