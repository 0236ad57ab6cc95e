select coalesce(bool_and(has_table_privilege(oid, 'insert')
  and (relname ~ '^a2a_tasks_audit' or has_table_privilege(oid, 'update'))), true)
from pg_class where relkind = 'r' and relname ~ '^a2a_(tasks|push)_' and pg_table_is_visible(oid)
