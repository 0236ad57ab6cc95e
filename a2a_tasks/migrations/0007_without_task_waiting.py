"""The index before `task_inbox` is dropped."""

from django.db import migrations

from a2a_tasks.migrations._patience import RemoveIndexPatiently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0006_tasks_that_wait_for_people')]

    operations = [RemoveIndexPatiently(model_name='task', name='task_waiting')]
