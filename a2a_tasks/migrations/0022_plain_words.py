"""Names of columns in the console. The tables do not change."""

from __future__ import annotations

from django.db import migrations, models

from a2a_tasks.migrations._patience import PatientMigration

ACTIONS = [("refuse", "refuse it"), ("pause", "pause it"), ("ask", "ask an operator")]
WINDOWS = [("ever", "never"), ("hour", "every hour"), ("day", "every day"), ("month", "every month")]


class Migration(PatientMigration):
    """State of models only."""

    dependencies = [("a2a_tasks", "0021_bulk_jobs")]

    operations = [
        migrations.AlterModelOptions(
            name="budgetuse",
            options={"verbose_name": "budget usage", "verbose_name_plural": "budget usage"},
        ),
        migrations.AlterField(
            model_name="apikey", name="name", field=models.CharField(max_length=200)
        ),
        migrations.AlterField(
            model_name="budget",
            name="action",
            field=models.CharField(
                choices=ACTIONS,
                default="refuse",
                max_length=16,
                verbose_name="when it is used up",
            ),
        ),
        migrations.AlterField(
            model_name="budget",
            name="window",
            field=models.CharField(
                choices=WINDOWS, default="ever", max_length=16, verbose_name="resets"
            ),
        ),
    ]
