"""Indexes and statistics of PostgreSQL for the search of tasks, for names that have few rows, and for sums by day."""

from django.db import migrations

from a2a_tasks.migrations._patience import PatientMigration


VECTOR = "to_tsvector('simple', regexp_replace(opening, '[^[:alnum:]]+', ' ', 'g'))"
WORDS = f"on a2a_tasks_message using gin (({VECTOR})) where number = 1 and opening <> ''"
#: The expected number of different values in the pages of one entry; with more, pages are read in vain.
VALUES = {"tenant": 60, "owner": 600, "maker": 300, "origin_dialect": 16, "origin_binding": 16}
COLUMNS = ", ".join(f"{column} text_bloom_ops(n_distinct_per_range={number})" for column, number in VALUES.items())
#: An entry is of 16 pages: about five hundred tasks.
TASKS = f"on a2a_tasks_task using brin ({COLUMNS}) with (pages_per_range=16)"
#: About two thousand reports.
USAGE = (
    "on a2a_tasks_usage using brin (owner text_bloom_ops(n_distinct_per_range=1000), "
    "caller text_bloom_ops(n_distinct_per_range=1000)) with (pages_per_range=32)"
)
AUDIT = "on a2a_tasks_auditentry using brin (actor text_bloom_ops(n_distinct_per_range=500)) with (pages_per_range=16)"
INDEXES = {
    "a2a_tasks_message_words": WORDS,
    "a2a_tasks_task_names": TASKS,
    "a2a_tasks_usage_names": USAGE,
    "a2a_tasks_audit_names": AUDIT,
}
DAYS = "a2a_tasks_usage_day on (((at at time zone 'UTC')::date)) from a2a_tasks_usage"


def install(apps, schema):
    if schema.connection.vendor == "postgresql":
        for name, definition in INDEXES.items():
            schema.execute(f"create index {name} {definition}")
        schema.execute(f"create statistics {DAYS}")


def remove(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute("drop statistics if exists a2a_tasks_usage_day")
        for name in INDEXES:
            schema.execute(f"drop index if exists {name}")


class Migration(PatientMigration):
    replaces = [("a2a_console", "0001_search_indexes"), ("a2a_console", "0002_rare_names")]
    dependencies = [("a2a_tasks", "0003_indexes")]

    operations = [migrations.RunPython(install, remove)]
