"""The text of a task's status in lists."""

from __future__ import annotations

from django.db import migrations, models

from a2a_tasks.migrations._patience import PatientMigration


class Migration(PatientMigration):
    """A column with a default, so that no row is rewritten: with `AddField` alone, SQLite would copy the table."""

    dependencies = [("a2a_tasks", "0019_recorded_times")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name="task",
                    name="status_text",
                    field=models.CharField(blank=True, db_default="", default="", max_length=200),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "alter table a2a_tasks_task add column status_text varchar(200) not null default ''",
                    "alter table a2a_tasks_task drop column status_text",
                ),
            ],
        ),
    ]
