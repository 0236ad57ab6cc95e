"""The indexes of PostgreSQL that the search of tasks uses."""

from django.db import migrations

from a2a_console.search import sparse_index, text_search


def install(apps, schema):
    text_search.install(schema)
    sparse_index.install(schema)


def remove(apps, schema):
    sparse_index.remove(schema)
    text_search.remove(schema)


class Migration(migrations.Migration):
    dependencies = [("a2a_tasks", "0002_triggers_and_collation")]

    operations = [migrations.RunPython(install, remove)]
