"""The settings of a host that consists of a worker and SQLite: what the tests in an environment need."""

import os
import tempfile

# the processes of a test share the database
DIRECTORY = os.environ.setdefault("FRAMEWORKS_DIRECTORY", tempfile.mkdtemp())
SECRET_KEY = "s" * 50
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "a2a_tasks",
    "a2a_push",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": f"{DIRECTORY}/db.sqlite3",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
A2A_RUNS = "local"
A2A_POLL_SECONDS = A2A_BEAT_SECONDS = 0.1
A2A_LEASE_SECONDS = 2.0
