"""All runs of a task are found by one index. It has the finished ones, too, so that it never looks empty to the planner.

The index that Django makes for the relation to the task is the beginning of this one, and goes.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently, RemoveIndexPatiently


def drop_index_of_relation(apps: Any, schema: Any) -> None:
    """Drop the index of the relation alone; an AlterField would check the relation of each row again."""
    table = apps.get_model('a2a_tasks', 'Run')._meta.db_table
    with schema.connection.cursor() as cursor:
        found = schema.connection.introspection.get_constraints(cursor, table)
    how = 'concurrently ' if schema.connection.vendor == 'postgresql' else ''
    for name, one in found.items():
        if one['index'] and not one['unique'] and one['columns'] == ['task_id']:
            schema.execute(f'drop index {how}if exists {schema.quote_name(name)}')


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0009_rows_of_an_owner')]

    operations = [
        AddIndexPatiently(
            model_name='run',
            index=models.Index(fields=['task', 'status', 'id'], name='run_of_task'),
        ),
        RemoveIndexPatiently(model_name='run', name='run_unfinished'),
        migrations.SeparateDatabaseAndState(
            # Back, the relation is left without an index of its own: nothing depends on it.
            database_operations=[
                migrations.RunPython(drop_index_of_relation, migrations.RunPython.noop)
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='run',
                    name='task',
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name='runs',
                        to='a2a_tasks.task',
                    ),
                ),
            ],
        ),
    ]
