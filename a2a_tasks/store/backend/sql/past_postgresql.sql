-- The value of `past` with the present attempt. A dead one ended with its lease.
(case when jsonb_array_length(past) >= {most} then past - 1 else past end)
  || jsonb_build_array(jsonb_build_array(attempt, worker, extract(epoch from started_at),
    extract(epoch from least(clock_timestamp(), lease_until)), %s::text, %s::text))
