-- The items that are cut off go before the statement that may give their numbers to others.
delete from a2a_tasks_conversationitem e
using unnest(%(task)s::bigint[], %(key)b::text[], %(kept)s::int[]) as i(task, key, kept)
join a2a_tasks_task t on t.id = i.task join a2a_tasks_conversationlist l on l.context_id = t.context_id and l.key = i.key
where e.list_id = l.id and e.number > i.kept returning 1
