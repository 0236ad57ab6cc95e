"""What takes long, in small transactions: indexes of the table of runs, and the usage of earlier versions in the ledger.

Each operation can be repeated, if the migration was interrupted. The column `usage` of tasks stays in the database, so
that processes of the version before can go on while the new ones come; no code reads it any more.
"""

import json
import uuid
from decimal import Decimal

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently

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
    rows, after = [], 0
    while spent := list(slice_of(Task, after)):
        after = spent[-1].pk
        for task in spent:
            for model, used in json.loads(task.usage).items():
                rows.append(make_row(Usage, task, model, used, f"{task.pk} {model}", task.status_at))
        rows = save(Usage, rows)
    live = Task.objects.filter(pk__in=apps.get_model("a2a_tasks", "Run").objects.filter(status__in=LIVE).values("task"))
    steps = Step.objects.filter(task__in=live, result__startswith=MARKED)
    for step in steps.select_related("task__context").order_by("task", "input_number", "name"):
        for model, used in json.loads(step.result)["urn:a2a-host:usage"].items():
            seed = f"{step.task_id} {step.input_number} {step.name} {model}"
            row = make_row(Usage, step.task, model, used, seed, step.created_at)
            row.run, row.step = step.run, step.name
            rows.append(row)
        rows = save(Usage, rows)
    save(Usage, rows, least=1)


def slice_of(Task, after):
    """Return the next tasks. By their keys, since a transaction that reads all of them would be long."""
    return Task.objects.filter(pk__gt=after).exclude(usage="").select_related("context").order_by("pk")[:SLICE]


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
    atomic = False
    dependencies = [("a2a_tasks", "0010_budgets")]

    operations = [
        AddIndexPatiently(model_name='run', index=models.Index(models.F('ordered_in'), models.F('id'), condition=models.Q(('ordered_in__isnull', False), ('status__in', ['queued', 'running'])), name='run_ordered')),
        AddIndexPatiently(model_name='run', index=models.Index(models.F('due_at'), condition=models.Q(('round__gte', 4611686018427387904), ('status', 'queued')), name='run_parked')),
        AddIndexPatiently(model_name='run', index=models.Index(models.F('awaits'), condition=models.Q(('round__gte', 4611686018427387904), ('status', 'queued'), ('awaits__isnull', False)), name='run_awaiting')),
        AddIndexPatiently(model_name='run', index=models.Index(models.F('waits_for_budget'), condition=models.Q(('round__gte', 4611686018427387904), ('status', 'queued'), ('waits_for_budget__isnull', False)), name='run_waits_for_budget')),
        migrations.RunPython(copy_sums, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name="task", name="usage")]
        ),
    ]
