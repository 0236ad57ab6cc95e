"""Runs that an earlier release has put into the queue behind others: claims would walk over them as long as they wait."""

from django.db import migrations, transaction
from django.db.models import Exists, OuterRef, Q

#: The round of a run behind another, and the number of runs that are changed in one transaction.
BEHIND, BATCH = 2**61, 1000


def put_behind(apps, schema_editor):
    """Take the runs out of the queue that wait for an earlier one, some at a time; those that are locked stay."""
    run = apps.get_model('a2a_tasks', 'Run')
    earlier = run.objects.filter(pk__lt=OuterRef('pk'), status__in=['queued', 'running'])
    waits = Q(Exists(earlier.filter(task=OuterRef('task')))) | Q(ordered_in__isnull=False) & Q(
        Exists(earlier.filter(ordered_in=OuterRef('ordered_in')))
    )
    queued = run.objects.filter(waits, status='queued', round__lt=BEHIND).order_by('pk')
    after = 0
    while True:
        with transaction.atomic():
            locked = queued.filter(pk__gt=after).select_for_update(of=('self',), skip_locked=True)
            keys = list(locked.values_list('pk', flat=True)[:BATCH])
            run.objects.filter(pk__in=keys).update(round=BEHIND)
        if not keys:
            return
        after = keys[-1]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0016_cache_writes_and_cancel_notices')]

    operations = [migrations.RunPython(put_behind, migrations.RunPython.noop)]
