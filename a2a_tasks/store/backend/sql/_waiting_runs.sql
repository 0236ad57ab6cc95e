-- The runs of agent `w` that may be claimed.
    from a2a_tasks_run r
    where r.status = 'queued' and r.queue = %(queue)s and {_is_of_agent} and r.due_at <= clock_timestamp()
      and r.round <= %(last_round)s and r.share <> all(%(full)s) and {quarantine}
      and (w.hosted or r.due_at < clock_timestamp() - make_interval(secs => %(orphan)s))
      and not {_is_behind_another}
