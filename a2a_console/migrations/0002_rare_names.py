"""Indexes and statistics for names that have few rows, and for sums by day, all built while the tables are written.

The index of rare values of tasks told pages apart up to 100 owners in each range of pages; a host of many callers has
more of them in every range, so a search read the whole table. Each operation can be repeated.
"""

from django.db import migrations

from a2a_tasks.migrations._patience import BuildPatiently

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
DAYS = "create statistics if not exists a2a_tasks_usage_day on (((at at time zone 'UTC')::date)) from a2a_tasks_usage"


def drop_former(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute("drop index concurrently if exists a2a_tasks_task_rare")


def add_statistics(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute(DAYS)


def drop_statistics(apps, schema):
    if schema.connection.vendor == "postgresql":
        schema.execute("drop statistics if exists a2a_tasks_usage_day")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("a2a_console", "0001_search_indexes"), ("a2a_tasks", "0011_without_long_locks")]

    operations = [
        BuildPatiently("a2a_tasks_task_names", TASKS),
        migrations.RunPython(drop_former, migrations.RunPython.noop),
        BuildPatiently("a2a_tasks_usage_names", USAGE),
        BuildPatiently("a2a_tasks_audit_names", AUDIT),
        migrations.RunPython(add_statistics, drop_statistics),
    ]
