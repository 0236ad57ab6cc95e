"""The index of parked runs that wait for tasks or calls: the look at all of them goes on where the last one came to."""

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0003_indexes')]

    operations = [
        AddIndexPatiently(
            model_name='run',
            index=models.Index(
                models.F('id'),
                name='run_waits_for_tasks',
                condition=models.Q(
                    ('round__gte', 4611686018427387904),
                    ('status', 'queued'),
                    models.Q(('awaits__isnull', False), ('awaits_calls', True), _connector='OR'),
                ),
            ),
        ),
    ]
