"""The indexes of PostgreSQL that the search of tasks uses."""

from django.db import migrations


from a2a_tasks.migrations._patience import PatientMigration


VECTOR = "to_tsvector('simple', regexp_replace(opening, '[^[:alnum:]]+', ' ', 'g'))"
WORDS = f"""
create index a2a_tasks_message_words on a2a_tasks_message using gin (({VECTOR})) where number = 1 and opening <> ''
"""
#: The expected number of different values in the pages of one entry; with more, pages are read in vain.
VALUES = {"tenant": 20, "owner": 100, "maker": 50, "origin_dialect": 16, "origin_binding": 16}
COLUMNS = ", ".join(f"{column} text_bloom_ops(n_distinct_per_range={number})" for column, number in VALUES.items())
#: An entry is of 16 pages: about five hundred tasks.
RARE = f"create index a2a_tasks_task_rare on a2a_tasks_task using brin ({COLUMNS}) with (pages_per_range=16)"


def install(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute(WORDS)
        schema.execute(RARE)


def remove(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute("drop index if exists a2a_tasks_task_rare")
        schema.execute("drop index a2a_tasks_message_words")


class Migration(PatientMigration):
    dependencies = [("a2a_tasks", "0002_triggers_and_collation")]

    operations = [migrations.RunPython(install, remove)]
