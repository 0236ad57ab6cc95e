"""Schema beyond Django's models: rows of the audit log are only added, and public ids are sorted by code points."""

from django.db import migrations

from a2a_tasks.store import audit_triggers


def install(apps, schema):
    audit_triggers.install(schema)


def remove(apps, schema):
    audit_triggers.remove(schema)


def collate(apps, schema):
    """Set the collation with which the unique index of public ids also serves prefix searches."""
    if schema.connection.vendor == "postgresql":
        schema.execute('alter table a2a_tasks_task alter column public_id type varchar(256) collate "C"')


def uncollate(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute('alter table a2a_tasks_task alter column public_id type varchar(256) collate "default"')


class Migration(migrations.Migration):
    dependencies = [("a2a_tasks", "0001_initial")]

    operations = [
        migrations.RunPython(install, remove),
        migrations.RunPython(collate, uncollate),
    ]
