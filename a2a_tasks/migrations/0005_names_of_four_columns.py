"""The names of four columns in Python. The tables stay as they are: processes of the earlier release work on."""

from django.db import migrations, models

from a2a_tasks.migrations._patience import PatientMigration


class Migration(PatientMigration):
    dependencies = [('a2a_tasks', '0004_runs_that_wait_for_tasks')]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(model_name='run', name='run_share'),
                migrations.RenameField(model_name='task', old_name='maker', new_name='created_by'),
                migrations.AlterField(
                    model_name='task',
                    name='created_by',
                    field=models.CharField(blank=True, db_column='maker', db_default='', max_length=256),
                ),
                migrations.RenameField(model_name='run', old_name='share', new_name='quota_key'),
                migrations.AlterField(
                    model_name='run',
                    name='quota_key',
                    field=models.CharField(blank=True, db_column='share', db_default='', default='', max_length=256),
                ),
                migrations.RenameField(model_name='run', old_name='company', new_name='runs_in_process'),
                migrations.AlterField(
                    model_name='run',
                    name='runs_in_process',
                    field=models.IntegerField(db_column='company', db_default=0, default=0),
                ),
                migrations.RenameField(model_name='run', old_name='furthest', new_name='max_events'),
                migrations.AlterField(
                    model_name='run',
                    name='max_events',
                    field=models.IntegerField(db_column='furthest', db_default=0, default=0),
                ),
                migrations.AddIndex(
                    model_name='run',
                    index=models.Index(
                        models.F('quota_key'),
                        models.F('queue'),
                        models.F('round'),
                        condition=models.Q(('status', 'queued')),
                        name='run_share',
                    ),
                ),
            ]
        ),
    ]
