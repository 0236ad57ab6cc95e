"""The names of the agents of unfinished runs, and the indexes by which claims and releases find them.

Each operation can be repeated, if the migration was interrupted.
"""

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently

#: Claims look for the agents of runs that wait. Ended runs are not claimed.
NAME_AGENTS = """
update a2a_tasks_run set agent = (select t.agent from a2a_tasks_task t where t.id = a2a_tasks_run.task_id)
where status in ('queued', 'running') and agent = ''
"""
QUEUED = models.Q(('status', 'queued'))
BEHIND = models.Q(('round__gte', 2305843009213693952), ('round__lt', 4611686018427387904), ('status', 'queued'))
SUSPECT = models.Q(('shared_deaths__gte', 2), ('status', 'queued'))
UNFINISHED = models.Q(('status__in', ['queued', 'running']))
TURN = [models.F(name) for name in ('queue', 'agent', 'round', 'id')]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0012_runs_behind_others')]

    operations = [
        migrations.RunSQL(NAME_AGENTS, migrations.RunSQL.noop),
        AddIndexPatiently(model_name='run', index=models.Index(*TURN, condition=QUEUED, name='run_due_by_agent')),
        AddIndexPatiently(model_name='run', index=models.Index(models.F('id'), condition=BEHIND, name='run_behind')),
        AddIndexPatiently(model_name='run', index=models.Index(*TURN, condition=SUSPECT, name='run_suspect')),
        AddIndexPatiently(model_name='run', index=models.Index(models.F('task'), models.F('id'), condition=UNFINISHED, name='run_unfinished')),
    ]
