select count(*) from sqlite_master where type = 'trigger' and tbl_name like 'a2a_tasks_audit%'
