json_insert(case when json_array_length(past) >= {most} then json_remove(past, '$[1]') else past end, '$[#]',
  json_array(attempt, worker, (julianday(started_at) - 2440587.5) * 86400.0,
    (julianday(min(strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'), lease_until)) - 2440587.5) * 86400.0, %s, %s))
