-- The events of a task after a number, up to a number of bytes. The server reads only the lengths of bodies beyond it.
select number, kind, state, run, body from (
  select o.*, coalesce(sum(octet_length(o.body)) over (
    order by o.number rows between unbounded preceding and 1 preceding), 0) as before
  from ({_read_after}) o(number, kind, state, run, body)
) e
where before < %s order by number
