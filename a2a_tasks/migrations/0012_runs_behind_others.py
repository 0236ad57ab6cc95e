from django.db import migrations, models

from a2a_tasks.migrations._patience import PatientMigration


class Migration(PatientMigration):

    dependencies = [
        ('a2a_tasks', '0011_without_long_locks'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='run',
            name='run_suspect',
        ),
        migrations.AddField(
            model_name='run',
            name='agent',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
    ]
