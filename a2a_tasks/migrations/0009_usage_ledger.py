"""The ledger of usage. Migration 0011 copies the sums of earlier versions."""

import django.db.models.functions.datetime
from django.db import migrations, models

from a2a_tasks.migrations._patience import PatientMigration

class Migration(PatientMigration):
    dependencies = [("a2a_tasks", "0008_agent_versions")]

    operations = [
        migrations.CreateModel(
            name="Usage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("report", models.UUIDField(unique=True)),
                ("task", models.BigIntegerField()),
                ("task_id", models.CharField(blank=True, default="", max_length=256, verbose_name="task")),
                ("context_id", models.CharField(blank=True, default="", max_length=256, verbose_name="context")),
                ("tenant", models.CharField(blank=True, default="", max_length=256)),
                ("owner", models.CharField(blank=True, default="", max_length=256)),
                ("caller", models.CharField(blank=True, default="", max_length=256)),
                ("agent", models.CharField(max_length=64)),
                ("run", models.BigIntegerField()),
                ("attempt", models.IntegerField()),
                ("step", models.CharField(blank=True, default="", max_length=200)),
                ("model", models.CharField(max_length=200)),
                ("requests", models.BigIntegerField()),
                ("input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("cached_tokens", models.BigIntegerField()),
                ("cost", models.DecimalField(blank=True, decimal_places=12, max_digits=24, null=True)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "usage",
                "indexes": [
                    models.Index("task", name="usage_task"),
                    models.Index("at", name="usage_at"),
                ],
            },
        ),
    ]
