-- The condition in SQL that run `r` has to wait for an earlier one, of its task or in order of its context. Such a run
-- has the round BEHIND, which claims do not read. But of two messages that are accepted at the same moment, the second
-- may not have seen the first. Runs get their ids while the row of their context is locked, so that a transaction that
-- sees a run sees all earlier ones.
(exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
      and e.status in ('queued', 'running'))
    or r.ordered_in is not null and exists (select from a2a_tasks_run e where e.ordered_in = r.ordered_in
      and e.id < r.id and e.status in ('queued', 'running')))
