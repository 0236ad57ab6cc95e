from django.db import migrations

from a2a_tasks.store import rare


def install(apps, schema):
    """A second for a million tasks; others are written meanwhile."""
    rare.install(schema)


def remove(apps, schema):
    rare.remove(schema)


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('a2a_tasks', '0020_handed_secrets'),
    ]

    operations = [
        migrations.RunPython(install, remove),
    ]
