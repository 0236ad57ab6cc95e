select count(*) from pg_trigger where tgname ~ '^a2a_tasks_audit[a-z]+_(kept|truncate)$' and tgenabled = 'O'
