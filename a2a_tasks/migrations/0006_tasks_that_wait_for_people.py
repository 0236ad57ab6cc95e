"""The index of tasks that wait for people, with what the inbox filters by: users of one tenant read no other rows."""

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0005_names_of_four_columns')]

    operations = [
        AddIndexPatiently(
            model_name='task',
            index=models.Index(
                models.F('status_at'),
                models.F('id'),
                models.F('state'),
                models.F('tenant'),
                name='task_inbox',
                condition=models.Q(
                    ('is_task', True),
                    ('state__in', ['TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_INPUT_REQUIRED']),
                ),
            ),
        ),
    ]
