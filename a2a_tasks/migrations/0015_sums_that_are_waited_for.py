"""The sums of budgets for which runs wait, and their index.

Each operation can be repeated, if the migration was interrupted.
"""

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently

#: The runs that older processes have parked are woken, too.
NAME_WAITED = """
update a2a_tasks_budgetuse set waited = true
where id in (select waits_for_budget from a2a_tasks_run where waits_for_budget is not null and status = 'queued')
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0014_budget_room')]

    operations = [
        migrations.RunSQL(NAME_WAITED, migrations.RunSQL.noop),
        AddIndexPatiently(model_name='budgetuse', index=models.Index(models.F('id'), condition=models.Q(('waited', True)), name='budget_waited')),
    ]
