-- The conversations are locked in the order of their ids. A transaction that waited for one reads its digest again. Of two
-- messages that would continue one, the first does.
with given as (select * from {given}), held as (
  select p.id, g.n from a2a_tasks_chatprefix p join given g on (g.place, g.before) = (p.id, p.digest)
  order by p.id for update of p
), input as (
  select * from given where place = 0 or n in (select min(n) from held group by id)
)
{_write_tasks}
, begun as (
  insert into a2a_tasks_chatprefix (digest, task_id, number)
  select asked, key, 1 from keyed where place = 0 and asked <> '' order by n
), moved as (
  update a2a_tasks_chatprefix p set digest = k.asked, task_id = k.key, number = 1, updated_at = statement_timestamp()
  from keyed k where p.id = k.place
)
select k.n, k.key, r.id, k.behind from keyed k join run r on r.task_id = k.key order by k.n
