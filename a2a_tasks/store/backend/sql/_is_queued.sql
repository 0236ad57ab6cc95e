-- The condition in SQL that run `r` is queued, where it is found by its key or its task. With "=" the planner may read an
-- index of all queued runs instead: while it does not know of a burst, it rates that index as empty.
r.status between 'queued' and 'queued'
