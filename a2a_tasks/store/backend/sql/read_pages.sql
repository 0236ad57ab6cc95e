-- If the bodies have more than `most` bytes in all, none is read.
select i.n, p.number, p.kind, p.state, p.run,
  case when sum(octet_length(p.body)) over () <= %(most)s then p.body end as body,
  sum(octet_length(p.body)) over () as size
from unnest(%(n)s::int[], %(task)s::bigint[], %(number)s::int[], %(which)s::int[]) as i(n, task, number, which)
cross join lateral (
  select o.*, sum(octet_length(o.body)) over (order by o.number) - octet_length(o.body) as before
  from (
    select e.number, e.kind, e.state, e.run,
      case when octet_length(e.body) > %(longest)s then '' else e.body end as body
    from a2a_tasks_event e
    where e.task_id = i.task and e.number > i.number and {_is_wanted}
    order by e.number limit %(limit)s
  ) o
) p
where p.before < %(max_bytes)s
order by i.n, p.number
