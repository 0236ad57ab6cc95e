"""Indexes of notices of cancelled tasks: those of agents that nobody hosts may be many."""

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0007_without_task_waiting')]

    operations = [
        AddIndexPatiently(
            model_name='cancelnotice',
            index=models.Index(models.F('agent'), models.F('id'), name='cancel_notice_agent'),
        ),
        AddIndexPatiently(
            model_name='cancelnotice',
            index=models.Index(models.F('at'), name='cancel_notice_age'),
        ),
    ]
