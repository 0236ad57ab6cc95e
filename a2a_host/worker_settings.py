"""The settings of a worker in an environment of its own, from the same variables as the host's.

It has no web server, no admin and no migrations: it needs the host's database, Redis and secrets, and the apps with its
agents (A2A_APPS).
"""

from __future__ import annotations

from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

from a2a_project import __version__, defaults, log_format, variables

env = environ.Env()
missing = [
    name for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL") if not env.str(name, default="")
]
if missing:
    raise ImproperlyConfigured(f"A worker needs the host's {' and '.join(missing)}")

SECRET_KEY = env.str("SECRET_KEY")
SECRET_KEY_FALLBACKS = [
    key.strip() for key in env.list("SECRET_KEY_FALLBACKS", default=[]) if key.strip()
]
DATABASES = {"default": variables.database(env.str("DATABASE_URL"))}
DATABASES["default"]["OPTIONS"] = defaults.connect(DATABASES["default"])
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "a2a_tasks",
    "a2a_push",
    *variables.apps(env.list("A2A_APPS", default=[])),
]
USE_TZ = True
TIME_ZONE = "UTC"
#: Files that are too large for a row: all processes of a host share this storage.
VAR_DIR = Path(env.str("VAR_DIR", default="var")).resolve()
STORAGES = {
    "default": {"BACKEND": defaults.FILES},
    "a2a_files": defaults.keep_files(
        VAR_DIR / "files",
        env.str("FILE_STORAGE", default=defaults.FILES),
        **env.json("FILE_STORAGE_OPTIONS", default={}),
    ),
}
REDIS_URL = variables.server("REDIS_URL", env.str("REDIS_URL"), ("redis", "rediss", "unix"))
A2A_CELERY_BROKER_URL = variables.server(
    "CELERY_BROKER_URL", env.str("CELERY_BROKER_URL", default="") or REDIS_URL, variables.BROKERS
)
A2A_HOST_VERSION = __version__
LOGGING = log_format.make_logging(
    env.str("LOG_LEVEL", default="INFO"), env.str("A2A_LOG_FORMAT", default="text")
)
