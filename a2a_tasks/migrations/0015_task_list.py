from django.db import migrations, models

from a2a_tasks.store import words


def install(apps, schema):
    words.install(schema)


def remove(apps, schema):
    words.remove(schema)


def collate(apps, schema):
    """The unique index then serves `begins with` too; it is made anew, which takes seconds for a million rows."""
    if schema.connection.vendor == "postgresql":
        schema.execute('alter table a2a_tasks_task alter column public_id type varchar(256) collate "C"')


def uncollate(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute('alter table a2a_tasks_task alter column public_id type varchar(256) collate "default"')


class Migration(migrations.Migration):

    dependencies = [
        ('a2a_tasks', '0014_figures'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='task',
            options={'permissions': [('see_all_tenants', 'Can see every tenant'), ('run_again_task', 'Can run tasks again')]},
        ),
        migrations.AddField(
            model_name='task',
            name='origin_binding',
            field=models.CharField(blank=True, db_default='', default='', max_length=16),
        ),
        migrations.AddField(
            model_name='message',
            name='opening',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
        migrations.RunPython(collate, uncollate),
        migrations.RunPython(install, remove),
    ]
