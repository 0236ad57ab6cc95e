"""On PostgreSQL the tables of the audit log cannot be emptied at once, either."""

from typing import Any

from django.db import migrations

from a2a_tasks.store.audit_triggers import renew


def make(apps: Any, schema: Any) -> None:
    """Make the triggers that there should be."""
    renew(schema)


class Migration(migrations.Migration):
    dependencies = [("a2a_tasks", "0012_operate")]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
