"""Which backend this run of the tests uses, and the environment that says so to Django and to child processes.

`TEST_BACKEND=sqlite` (the default) is the embedded host: a SQLite file, everything in one process.
`TEST_BACKEND=stack` is production: PostgreSQL, Redis, Celery workers. `make test` runs both.
"""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Mapping, MutableMapping
from contextlib import ExitStack

from tests.servers import find_postgres, find_redis, with_path

__all__ = ["SQLITE", "STACK", "backend", "children", "describe", "prepare", "stop"]

SQLITE, STACK = "sqlite", "stack"
#: Where the first process of a run leaves for the others, which get its environment, what they are asked for.
ASKED = "TEST_ASKED"
#: What a settings module reads without a prefix. With every `A2A_*` it is taken out of a developer's environment.
READ_BY_SETTINGS = {
    "ALLOWED_HOSTS",
    "CELERY_BROKER_URL",
    "CSRF_TRUSTED_ORIGINS",
    "DATABASE_URL",
    "DEBUG",
    "HOST",
    "LOG_LEVEL",
    "PORT",
    "REDIS_URL",
    "SECRET_KEY",
    "SECURE_COOKIES",
    "SECURE_HSTS_INCLUDE_SUBDOMAINS",
    "SECURE_HSTS_PRELOAD",
    "SECURE_HSTS_SECONDS",
    "SECURE_SSL_REDIRECT",
    "VAR_DIR",
}

_undo = ExitStack()
_origins: list[str] = []


def backend() -> str:
    """Say which backend was asked for."""
    name = os.environ.get("TEST_BACKEND", SQLITE)
    if name not in {SQLITE, STACK}:
        raise ValueError(f"TEST_BACKEND must be {SQLITE} or {STACK}, not {name!r}")
    return name


def prepare(environ: MutableMapping[str, str]) -> None:
    """Make the environment that of a fresh host on the chosen backend. Called once, before settings are read."""
    asked: dict[str, str] = json.loads(environ.get(ASKED, "null")) or dict(environ)
    for name in list(environ):
        if name in READ_BY_SETTINGS or name.startswith("A2A_"):
            del environ[name]
    environ["SECRET_KEY"] = "only-for-tests"
    environ["A2A_RATE_WRONG_CREDENTIALS"] = (
        ""  # tests are wrong on purpose, often, and from one address
    )
    environ["VAR_DIR"] = _undo.enter_context(tempfile.TemporaryDirectory(prefix="a2a-tests-"))
    if backend() == STACK:
        environ.update(stack_environ(asked))
        environ[ASKED] = json.dumps(_shared(asked, environ))
    atexit.register(stop)


def _shared(asked: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """What the other processes of this run (`pytest -n`) are asked to use: the same servers, a database of their own on each."""
    servers = {
        "DATABASE_URL": asked.get("DATABASE_URL") or with_path(found["DATABASE_URL"], "postgres"),
        "REDIS_URL": found["REDIS_URL"],
    }
    if broker := asked.get("CELERY_BROKER_URL"):
        servers["CELERY_BROKER_URL"] = broker
    return servers


def stack_environ(asked: Mapping[str, str]) -> dict[str, str]:
    """Find or start the servers, and name them as the settings do."""
    if asked.get("CELERY_BROKER_URL") and "PYTEST_XDIST_WORKER" in os.environ:
        raise ValueError("Several processes would share one CELERY_BROKER_URL: say ARGS='-n 0'")
    postgres, broker = find_postgres(asked, _undo), find_redis(asked, _undo)
    _origins.extend([f"PostgreSQL: {postgres.origin}", f"Redis: {broker.origin}"])
    return {
        "DATABASE_URL": postgres.url,
        "REDIS_URL": broker.url,
        "CELERY_BROKER_URL": asked.get("CELERY_BROKER_URL") or broker.url,
    }


def describe() -> str:
    """Say in one line what the tests run on."""
    return ", ".join([f"backend: {backend()}", *_origins])


def stop() -> None:
    """Stop what was started, give back what was claimed. Safe to call again."""
    _undo.close()


def children() -> dict[str, str]:
    """Give the environment of a real host process on the database of this run, with the real settings."""
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "a2a_project.settings", "PYTHONUNBUFFERED": "1"}
