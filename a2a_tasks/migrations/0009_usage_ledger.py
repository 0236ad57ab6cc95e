"""The ledger of usage. The sums of earlier versions become rows of it.

The column `usage` of tasks stays in the database, so that processes of the version before can go on while the new ones
come; no code reads it any more.
"""

import uuid
from decimal import Decimal

import django.db.models.functions.datetime
import msgspec
from django.db import migrations, models

#: Makes the ids of copied rows, so that a copy can be repeated.
COPIED = uuid.UUID("6a1f4ad5-7a1c-4c55-9a0e-0c1b6c6f2f10")
#: The beginning of the stored result of a step with usage.
MARKED = '{"urn:a2a-host:usage":'
LIVE = ["queued", "running"]
SLICE = 500
#: The code of ISO 4217 for no currency: earlier versions left it to the agent.
NO_CURRENCY = "XXX"


def copy_sums(apps, schema):
    """Copy the sums of tasks, and those that are kept with the steps of turns under way."""
    Task, Step, Usage = (apps.get_model("a2a_tasks", name) for name in ("Task", "Step", "Usage"))
    spent = Task.objects.exclude(usage="").select_related("context").order_by("pk")
    rows = []
    for task in spent.iterator(SLICE):
        for model, used in msgspec.json.decode(task.usage).items():
            rows.append(make_row(Usage, task, model, used, f"{task.pk} {model}", task.status_at))
        rows = save(Usage, rows)
    live = Task.objects.filter(pk__in=apps.get_model("a2a_tasks", "Run").objects.filter(status__in=LIVE).values("task"))
    steps = Step.objects.filter(task__in=live, result__startswith=MARKED)
    for step in steps.select_related("task__context").order_by("task", "input_number", "name"):
        for model, used in msgspec.json.decode(step.result)["urn:a2a-host:usage"].items():
            seed = f"{step.task_id} {step.input_number} {step.name} {model}"
            row = make_row(Usage, step.task, model, used, seed, step.created_at)
            row.run, row.step = step.run, step.name
            rows.append(row)
        rows = save(Usage, rows)
    save(Usage, rows, least=1)


def make_row(Usage, task, model, used, seed, at):
    cost = used.get("cost")
    return Usage(
        report=uuid.uuid5(COPIED, seed),
        task=task.pk,
        task_id=task.public_id,
        context_id=task.context.public_id,
        tenant=task.tenant,
        owner=task.owner,
        caller=task.maker or task.owner,
        agent=task.agent,
        run=0,
        attempt=0,
        model=model,
        requests=used.get("requests", 0),
        input_tokens=used.get("inputTokens", 0),
        output_tokens=used.get("outputTokens", 0),
        cached_tokens=used.get("cachedTokens", 0),
        cost=None if cost is None else Decimal(str(cost)),
        currency="" if cost is None else NO_CURRENCY,
        at=at,
    )


def save(Usage, rows, least=SLICE):
    """Write the rows if there are enough of them; return those that are left."""
    if len(rows) < least:
        return rows
    Usage.objects.bulk_create(rows, ignore_conflicts=True)
    return []


class Migration(migrations.Migration):
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
        migrations.RunPython(copy_sums, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name="task", name="usage")]
        ),
    ]
