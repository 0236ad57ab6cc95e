"""Indexes by which export and erasure find the contexts and the idempotency keys of one owner.

They are no sparse ones: where rows go and others take their places, a Bloom filter of a range of pages fills up.
"""

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0008_notices_of_cancels')]

    operations = [
        AddIndexPatiently(
            model_name='context',
            index=models.Index(models.F('owner'), name='context_owner'),
        ),
        AddIndexPatiently(
            model_name='idempotency',
            index=models.Index(models.F('owner'), name='idempotency_owner'),
        ),
    ]
