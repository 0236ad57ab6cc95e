#!/bin/sh
# Package:   Django 5.2.19 with SQLite (PyPI)
# Behaviour: `AddField` of a text column that is not null copies the whole table on SQLite, also if the column has a
#            constant default of the database (`db_default`), with which SQLite could add it at once. The copy has only the
#            columns of the models, so a column that was kept for an older release is lost with its values. A column that
#            may be null is added at once, and loses nothing.
# Output:    not null, with db_default: the table is copied, the kept column is gone
#            may be null: the table is not copied, the kept column is there
# Run:       sh findings/django_sqlite_added_column_copies_the_table.sh   (needs python3 and PyPI; half a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet Django==5.2.19
cat > "$place/try.py" <<'PYTHON'
import django
from django.conf import settings

DATABASE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
settings.configure(DATABASES={"default": DATABASE}, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
django.setup()

from django.db import connection, models
from django.test.utils import CaptureQueriesContext


class Note(models.Model):
    text = models.TextField()

    class Meta:
        app_label = "notes"


COLUMNS = {
    "not null, with db_default": models.CharField(max_length=200, default="", db_default=""),
    "may be null": models.CharField(max_length=200, null=True),
}
for number, (name, column) in enumerate(COLUMNS.items()):
    with connection.schema_editor() as editor:
        editor.create_model(Note)
    with connection.cursor() as cursor:
        cursor.execute("alter table notes_note add column kept text")
    column.set_attributes_from_name(f"added_{number}")
    column.model = Note
    with CaptureQueriesContext(connection) as told, connection.schema_editor() as editor:
        editor.add_field(Note, column)
    copied = any("INSERT INTO" in query["sql"] for query in told)
    with connection.cursor() as cursor:
        columns = {row.name for row in connection.introspection.get_table_description(cursor, "notes_note")}
        cursor.execute("drop table notes_note")
    print(
        f"{name}: the table is {'copied' if copied else 'not copied'},",
        f"the kept column is {'there' if 'kept' in columns else 'gone'}",
    )
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
not null, with db_default: the table is copied, the kept column is gone
may be null: the table is not copied, the kept column is there
TEXT
cmp "$place/seen" "$place/expected"
