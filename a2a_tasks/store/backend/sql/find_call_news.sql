-- What has happened to open calls in the last seconds (`call_news`). The tasks of this time are found first. With one
-- statement a part, the planner may walk over all calls or tasks instead, as long as its statistics are older than a burst of
-- them: 650 ms with a million tasks. The arrays let it expect few tasks: it would read all open calls otherwise.
with ended as materialized (
  select id from a2a_tasks_task
  where state in ({ended}) and status_at >= statement_timestamp() - make_interval(secs => %(recent)s)
), asking as materialized (
  select id, last_event from a2a_tasks_task
  where is_task and state in ({waiting}) and status_at >= statement_timestamp() - make_interval(secs => %(recent)s)
), standing as materialized (
-- Of the questions that stand, each look takes the next ones: there may be far more than change in a second.
  select id, child_id, parent_id, input_number from a2a_tasks_delegation
  where open and relayed is not null and id > %(after)s order by id limit %(most)s
)
(select 'a child has ended', parent_id, input_number from a2a_tasks_delegation
  where open and child_id = any(array(select id from ended)) limit %(most)s)
union all
(select 'a child asks its caller', parent_id, input_number from a2a_tasks_delegation
  where open and questions = 'return' and child_id = any(array(select id from asking)) limit %(most)s)
union all
-- Questions that do not stand yet, though they may, and those that replace one that stands.
(select 'a child asks', d.parent_id, d.input_number from a2a_tasks_delegation d
  join asking t on t.id = d.child_id join a2a_tasks_task p on p.id = d.parent_id
  where d.open and d.questions = 'relay' and d.child_id = any(array(select id from asking))
    and (d.relayed < t.last_event or d.relayed is null and p.state not in ({ended}, {waiting})) limit %(most)s)
union all
(select 'the turn is over', d.parent_id, d.input_number from a2a_tasks_delegation d
  where d.open and d.parent_id = any(array(select id from ended union all select id from asking))
    and not exists (select from a2a_tasks_run r where r.task_id = d.parent_id
      and r.input_number = d.input_number and r.status in ('queued', 'running')) limit %(most)s)
union all
-- A subquery for each of them: for a join the planner may read all tasks.
(select 'a question stands', s.parent_id, s.input_number from standing s
  where (select t.state from a2a_tasks_task t where t.id = s.child_id) not in ({waiting}))
union all
(select 'looked at', max(id), 0 from standing having count(*) = %(most)s)
