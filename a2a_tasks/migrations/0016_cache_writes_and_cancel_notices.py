"""Tokens that were written to a model's cache, and notices of cancelled tasks."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models.functions import Now

from a2a_tasks.migrations._patience import PatientMigration


class Migration(PatientMigration):
    """A column with a default, so that no row is rewritten, and a new table."""

    dependencies = [("a2a_tasks", "0015_sums_that_are_waited_for")]

    operations = [
        migrations.AddField(
            model_name="usage",
            name="cache_write_tokens",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name="CancelNotice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("run", models.BigIntegerField()),
                ("agent", models.CharField(max_length=64)),
                ("at", models.DateTimeField(db_default=Now())),
            ],
        ),
    ]
