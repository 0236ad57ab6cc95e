"""Django settings, read from the environment (twelve-factor). No variable set = the embedded host.

`docs/settings.md` lists every variable. Settings of the host itself (`A2A_*`) are declared, with type,
default and comment, in `a2a_tasks/conf.py`; here is only what Django and Celery need.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

#: Where the embedded host keeps its database and its generated key.
VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))
#: Embedded: no DATABASE_URL, so SQLite under VAR_DIR and everything in one process.
EMBEDDED = not env.str("DATABASE_URL", default="")


def _generated_key() -> str:
    """The key of an embedded host: made once, kept in VAR_DIR, readable by its owner only."""
    path = VAR_DIR / "secret_key"
    if not path.exists():
        VAR_DIR.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(48))
    return path.read_text().strip()


SECRET_KEY = env.str("SECRET_KEY", default="") or _generated_key()
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",  # the files of the page at /api/v1/docs/: nothing is loaded from other hosts
    "a2a_tasks",
    "a2a_push",
    # Agents are Django apps; A2A_APPS adds yours, separated by commas.
    *env.list("A2A_APPS", default=["examples.demo", "examples.tables"]),
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "a2a_tasks.access.staff.acting_staff",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "a2a_project.outage_page.OutagePage",
]
ROOT_URLCONF = "a2a_project.urls"
ASGI_APPLICATION = "a2a_project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

#: What makes SQLite a small server: readers beside one writer, and writers that wait their turn.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}
DATABASES = {
    "default": env.db_url_config(
        env.str("DATABASE_URL", default="") or f"sqlite:///{VAR_DIR / 'host.sqlite3'}"
    )
}
#: What libpq does about a server that is out of reach, in seconds (tcp_user_timeout: milliseconds). Parameters of
#: DATABASE_URL come first; how long an answer may take is A2A_DATABASE_SECONDS.
POSTGRES_OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS
elif DATABASES["default"]["ENGINE"].endswith("postgresql"):
    given = DATABASES["default"].get("OPTIONS", {})
    DATABASES["default"]["OPTIONS"] = {**POSTGRES_OPTIONS, **given}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # whitenoise warns of a missing one
WHITENOISE_USE_FINDERS = True  # the admin's files are served without a collectstatic step

#: Hints between processes; empty = one process, hints in memory.
REDIS_URL = env.str("REDIS_URL", default="")
#: The bell of the workers; empty = runs are started in the web process.
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="")
CELERY_TIMEZONE = "UTC"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "agents"
CELERY_BEAT_SCHEDULE = {
    "rescue": {"task": "a2a_tasks.execution.jobs.rescue_lost_runs", "schedule": 5.0},
    "purge": {
        "task": "a2a_tasks.execution.jobs.purge_old_tasks",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "webhooks": {
        "task": "a2a_push.jobs.sweep_webhooks",
        "schedule": 60.0,
        "options": {"queue": "webhooks", "expires": 60.0},
    },
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
#: Of RabbitMQ's connections: a dead one is noticed after twice as long.
CELERY_BROKER_HEARTBEAT = 10
#: What a full Redis answers is no reason to end.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
if CELERY_BROKER_URL.startswith(("redis", "valkey")):
    # Longer than the second that a worker waits for a message; without it, a Redis that is silent is waited for for ever.
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "socket_timeout": 3.0,
        "socket_connect_timeout": 2.0,
        "socket_keepalive": True,
        "health_check_interval": 3,
    }

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {  # two lines a ring of the bell tell nothing
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
}
#: The management API (`a2a_tasks/api`): deny by default, JSON and nothing else, errors in one shape.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["a2a_tasks.api.door.Door"],
    "DEFAULT_PERMISSION_CLASSES": ["a2a_tasks.api.door.Allowed"],
    "DEFAULT_PARSER_CLASSES": ["a2a_tasks.api.json_only.JSONBody"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "a2a_tasks.api.json_only.JSONOnly",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "a2a_tasks.api.problems.answer",
    "URL_FORMAT_OVERRIDE": None,
    "UNICODE_JSON": False,  # half a surrogate pair, which an agent may have said, can leave as an escape only
}
SPECTACULAR_SETTINGS = {
    "TITLE": "A2A host: management API",
    "DESCRIPTION": "What operators see and do in the admin, for their programs. Guide: docs/api.md.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["a2a_tasks.api.schema.exact"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "COMPONENT_SPLIT_REQUEST": True,
}
