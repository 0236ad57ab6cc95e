insert into a2a_tasks_auditentry (tenant, agent, actor, action, object, outcome, detail, request)
values (%s, %s, %s, %s, %s, %s, %s, %s)
