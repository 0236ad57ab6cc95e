"""Schema beyond Django's models: rows of the audit log are only added, and public ids are sorted by code points."""

from django.db import migrations


from a2a_tasks.migrations._patience import PatientMigration


TABLES = ("a2a_tasks_auditentry", "a2a_tasks_auditlink", "a2a_tasks_auditseal")
REFUSAL = "the audit log is append-only"
FUNCTION = f"""
create or replace function a2a_audit_refuse() returns trigger language plpgsql as $$
begin
  if current_setting('a2a.audit_unlocked', true) = 'yes' then
    if tg_op = 'DELETE' then return old; end if;
    return new;
  end if;
  raise exception '{REFUSAL}';
end $$
"""


def install(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute(FUNCTION)
    for table in TABLES:
        for made in write_statements(schema.connection.vendor, table):
            schema.execute(made)


def write_statements(vendor, table):
    if vendor == "postgresql":
        return [
            f"create trigger {table}_kept before update or delete on {table} "
            "for each row execute function a2a_audit_refuse()",
            f"create trigger {table}_truncate before truncate on {table} "
            "for each statement execute function a2a_audit_refuse()",
        ]
    return [
        f"create trigger {table}_{verb} before {verb} on {table} when not a2a_audit_unlocked() "
        f"begin select raise(abort, '{REFUSAL}'); end"
        for verb in ("update", "delete")
    ]


def remove(apps, schema):
    postgres = schema.connection.vendor == "postgresql"
    for table in TABLES:
        for name in ["kept", "truncate"] if postgres else ["update", "delete"]:
            on = f" on {table}" if postgres else ""
            schema.execute(f"drop trigger if exists {table}_{name}{on}")
    if postgres:
        schema.execute("drop function if exists a2a_audit_refuse()")


def collate(apps, schema):
    """Set the collation with which the unique index of public ids also serves prefix searches."""
    if schema.connection.vendor == "postgresql":
        schema.execute('alter table a2a_tasks_task alter column public_id type varchar(256) collate "C"')


def uncollate(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute('alter table a2a_tasks_task alter column public_id type varchar(256) collate "default"')


class Migration(PatientMigration):
    dependencies = [("a2a_tasks", "0001_tables")]

    operations = [
        migrations.RunPython(install, remove),
        migrations.RunPython(collate, uncollate),
    ]
