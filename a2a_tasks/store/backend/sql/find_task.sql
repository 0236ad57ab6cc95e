select {_task_columns} from a2a_tasks_task t join a2a_tasks_context c on c.id = t.context_id {_task_sizes} where t.id = %(task)s
