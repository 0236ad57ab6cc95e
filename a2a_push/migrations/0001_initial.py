import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from a2a_tasks.migrations._patience import PatientMigration


class Migration(PatientMigration):

    initial = True

    dependencies = [
        ('a2a_tasks', '0001_tables'),
    ]

    operations = [
        migrations.CreateModel(
            name='Receiver',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.CharField(blank=True, default='', max_length=256)),
                ('address', models.TextField()),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('breaker', models.TextField(blank=True, default='{}')),
                ('probe_at', models.DateTimeField(blank=True, null=True, verbose_name='next probe')),
                ('paused_until', models.DateTimeField(blank=True, null=True)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('disabled_reason', models.TextField(blank=True, default='')),
                ('well', models.BooleanField(default=False)),
                ('delivered', models.BigIntegerField(default=0)),
                ('failed', models.BigIntegerField(default=0, verbose_name='failed attempts')),
                ('last_success_at', models.DateTimeField(blank=True, null=True, verbose_name='last success')),
                ('last_failure_at', models.DateTimeField(blank=True, null=True, verbose_name='last failure')),
                ('last_seconds', models.FloatField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='PushConfig',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='push_configs', to='a2a_tasks.task')),
                ('public_id', models.CharField(max_length=256, verbose_name='config id')),
                ('dialect', models.CharField(max_length=8)),
                ('url', models.TextField(verbose_name='URL')),
                ('receiver', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='configs', to='a2a_push.receiver')),
                ('schemes', models.TextField(blank=True, default='[]')),
                ('secret', models.TextField(blank=True, default='', editable=False)),
                ('cursor', models.IntegerField(db_default=0, default=0)),
                ('looked', models.IntegerField(db_default=0, default=0)),
                ('active', models.BooleanField(db_default=True, default=True)),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('token', models.CharField(blank=True, db_default='', default='', editable=False, max_length=40)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('worker', models.CharField(blank=True, db_default='', default='', max_length=128)),
                ('disabled_reason', models.TextField(blank=True, db_default='', default='')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name': 'webhook',
                'ordering': ['pk'],
                'indexes': [models.Index(models.F('id'), condition=models.Q(('active', True)), name='push_config_active')],
                'constraints': [models.UniqueConstraint(fields=('task', 'public_id'), name='push_config_id_is_unique_per_task'), models.CheckConstraint(condition=models.Q(models.Q(('lease_until__isnull', True), ('token', '')), models.Q(models.Q(('token', ''), _negated=True), ('lease_until__isnull', False)), _connector='OR'), name='a_held_push_config_has_token_and_lease')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('config', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='deliveries', to='a2a_push.pushconfig')),
                ('task', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='a2a_tasks.task')),
                ('receiver', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='a2a_push.receiver')),
                ('number', models.IntegerField()),
                ('through', models.IntegerField()),
                ('webhook_id', models.CharField(max_length=40, unique=True, verbose_name='webhook id')),
                ('dialect', models.CharField(max_length=8)),
                ('content_type', models.CharField(max_length=64)),
                ('body', models.TextField()),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('delivered', 'Delivered'), ('dead', 'Dead'), ('cancelled', 'Cancelled')], max_length=16)),
                ('attempts', models.IntegerField(default=0)),
                ('next_at', models.DateTimeField(blank=True, null=True, verbose_name='next attempt')),
                ('reason', models.TextField(blank=True, default='')),
                ('trigger', models.CharField(choices=[('schedule', 'Schedule'), ('operator', 'Operator')], default='schedule', max_length=16)),
                ('replays', models.IntegerField(default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'indexes': [models.Index(models.F('task'), models.F('number'), name='delivery_of_task'), models.Index(models.F('config'), models.F('id'), name='delivery_of_config'), models.Index(models.F('receiver'), models.OrderBy(models.F('id'), descending=True), name='delivery_of_receiver'), models.Index(models.F('config'), models.F('id'), condition=models.Q(('status', 'pending')), name='delivery_pending'), models.Index(models.F('created_at'), condition=models.Q(('status', 'dead')), name='delivery_dead'), models.Index(models.F('settled_at'), models.F('status'), models.F('receiver'), condition=models.Q(('settled_at__isnull', False)), name='delivery_settled')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('settled_at__isnull', True), ('status', 'pending')), models.Q(models.Q(('status', 'pending'), _negated=True), ('settled_at__isnull', False)), _connector='OR'), name='a_delivery_is_pending_or_settled')],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tries', to='a2a_push.delivery')),
                ('number', models.IntegerField()),
                ('trigger', models.CharField(choices=[('schedule', 'Schedule'), ('operator', 'Operator')], max_length=16)),
                ('started_at', models.DateTimeField()),
                ('seconds', models.FloatField()),
                ('status', models.SmallIntegerField(blank=True, null=True, verbose_name='HTTP status')),
                ('fault', models.CharField(blank=True, default='', max_length=16)),
                ('excerpt', models.TextField(blank=True, default='')),
                ('detail', models.TextField(blank=True, default='')),
                ('worker', models.CharField(blank=True, default='', max_length=128)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='DeliveryBody',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='delivery_bodies', to='a2a_tasks.task')),
                ('number', models.IntegerField()),
                ('through', models.IntegerField()),
                ('dialect', models.CharField(max_length=8)),
                ('size', models.IntegerField()),
                ('body', models.TextField()),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('task', 'number', 'through', 'dialect'), name='one_body_per_notification')],
            },
        ),
    ]
