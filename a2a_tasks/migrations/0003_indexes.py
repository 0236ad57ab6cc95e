"""The indexes."""

from django.db import migrations, models

from a2a_tasks.migrations._patience import PatientMigration


class Migration(PatientMigration):
    replaces = [
        ('a2a_tasks', '0011_without_long_locks'),
        ('a2a_tasks', '0013_indexes_of_waiting_runs'),
        ('a2a_tasks', '0015_sums_that_are_waited_for'),
        ('a2a_tasks', '0024_newest_chats'),
    ]

    dependencies = [
        ('a2a_tasks', '0002_triggers_and_collation'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(models.F('object'), models.F('id'), name='audit_object'),
        ),
        migrations.AddIndex(
            model_name='budgetuse',
            index=models.Index(models.F('asked_at'), condition=models.Q(('asked_at__isnull', False)), name='budget_asks'),
        ),
        migrations.AddIndex(
            model_name='budgetuse',
            index=models.Index(models.F('since'), name='budget_since'),
        ),
        migrations.AddIndex(
            model_name='budgetuse',
            index=models.Index(models.F('id'), condition=models.Q(('waited', True)), name='budget_waited'),
        ),
        migrations.AddIndex(
            model_name='bulkresult',
            index=models.Index(models.F('job'), models.F('id'), name='bulk_results'),
        ),
        migrations.AddIndex(
            model_name='chatprefix',
            index=models.Index(models.F('digest'), models.F('updated_at'), name='chat_prefix_newest'),
        ),
        migrations.AddIndex(
            model_name='delegation',
            index=models.Index(models.F('id'), condition=models.Q(('cancel', True)), name='delegation_cancel'),
        ),
        migrations.AddIndex(
            model_name='delegation',
            index=models.Index(models.F('id'), condition=models.Q(('open', True)), name='delegation_open'),
        ),
        migrations.AddIndex(
            model_name='delegation',
            index=models.Index(models.F('id'), condition=models.Q(('open', True), ('relayed__isnull', False)), name='delegation_relayed'),
        ),
        migrations.AddIndex(
            model_name='delegation',
            index=models.Index(models.F('root'), name='delegation_root'),
        ),
        migrations.AddIndex(
            model_name='handedsecret',
            index=models.Index(models.F('expires_at'), condition=models.Q(('sealed', ''), _negated=True), name='secret_to_wipe'),
        ),
        migrations.AddIndex(
            model_name='idempotency',
            index=models.Index(models.F('created_at'), name='idempotency_age'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('awaits'), condition=models.Q(('round__gte', 4611686018427387904), ('status', 'queued'), ('awaits__isnull', False)), name='run_awaiting'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('id'), condition=models.Q(('round__gte', 2305843009213693952), ('round__lt', 4611686018427387904), ('status', 'queued')), name='run_behind'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('queue'), models.F('agent'), models.F('round'), models.F('id'), condition=models.Q(('status', 'queued')), name='run_due_by_agent'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('queue'), models.F('round'), models.F('id'), condition=models.Q(('status', 'queued')), name='run_due_by_round'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('lease_until'), condition=models.Q(('status', 'running')), name='run_leased'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('ordered_in'), models.F('id'), condition=models.Q(('ordered_in__isnull', False), ('status__in', ['queued', 'running'])), name='run_ordered'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('due_at'), condition=models.Q(('round__gte', 4611686018427387904), ('status', 'queued')), name='run_parked'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('share'), models.F('queue'), models.F('round'), condition=models.Q(('status', 'queued')), name='run_share'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('queue'), models.F('agent'), models.F('round'), models.F('id'), condition=models.Q(('shared_deaths__gte', 2), ('status', 'queued')), name='run_suspect'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('task'), models.F('id'), condition=models.Q(('status__in', ['queued', 'running'])), name='run_unfinished'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('waits_for_budget'), condition=models.Q(('round__gte', 4611686018427387904), ('status', 'queued'), ('waits_for_budget__isnull', False)), name='run_waits_for_budget'),
        ),
        migrations.AddIndex(
            model_name='storedfile',
            index=models.Index(condition=models.Q(('task', None)), fields=['id'], name='file_of_no_task'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('agent'), models.OrderBy(models.F('id'), descending=True), name='task_admin_agent'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('state'), models.OrderBy(models.F('id'), descending=True), name='task_admin_state'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('status_at'), models.F('state'), models.F('agent'), models.F('tenant'), condition=models.Q(('state__in', ['TASK_STATE_CANCELED', 'TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_REJECTED'])), name='task_ended'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('tenant'), models.F('owner'), models.F('agent'), models.OrderBy(models.F('status_at'), descending=True), models.OrderBy(models.F('id'), descending=True), condition=models.Q(('is_task', True)), name='task_list'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('context'), models.OrderBy(models.F('status_at'), descending=True), models.OrderBy(models.F('id'), descending=True), name='task_list_by_context'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('tenant'), models.F('owner'), models.F('agent'), models.F('state'), models.OrderBy(models.F('status_at'), descending=True), models.OrderBy(models.F('id'), descending=True), condition=models.Q(('is_task', True)), name='task_list_by_state'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('tenant'), models.F('owner'), models.F('agent'), models.F('id'), condition=models.Q(('is_task', True)), name='task_tally'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('id'), condition=models.Q(('is_task', False), models.Q(('state__in', ['TASK_STATE_CANCELED', 'TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_REJECTED']), _negated=True)), name='task_undecided'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('status_at'), models.F('id'), condition=models.Q(('is_task', True), ('state__in', ['TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_INPUT_REQUIRED'])), name='task_waiting'),
        ),
        migrations.AddIndex(
            model_name='usage',
            index=models.Index(models.F('at'), name='usage_at'),
        ),
        migrations.AddIndex(
            model_name='usage',
            index=models.Index(models.F('task'), name='usage_task'),
        ),
        migrations.AddIndex(
            model_name='worker',
            index=models.Index(fields=['seen_at'], name='worker_seen'),
        ),
    ]
