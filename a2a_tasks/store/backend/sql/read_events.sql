-- The events of a task after a number, up to a number of bytes. The server reads only the lengths of bodies beyond it. If the
-- bodies have more than `most` bytes in all, none is read: the first event may be large.
select number, kind, state, run, case when sum(octet_length(body)) over () <= %(most)s then body end as body,
  sum(octet_length(body)) over () as size
from (
  select o.*, coalesce(sum(octet_length(o.body)) over (
    order by o.number rows between unbounded preceding and 1 preceding), 0) as before
  from ({_read_after}) o(number, kind, state, run, body)
) e
where before < %(max_bytes)s order by number
