"""Environment variables that are easily mistyped: a mistake is reported in one line, with the right form.

Some of them contain passwords, so no message repeats a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

__all__ = ["apps", "database", "server", "BROKERS"]

#: The forms of a URL for the supported databases.
DATABASES = "postgres://USER:PASSWORD@HOST:5432/NAME or sqlite:////PATH/TO/FILE"

#: Brokers that Celery supports.
BROKERS = (
    "amqp",
    "amqps",
    "pyamqp",
    "redis",
    "rediss",
    "redis+socket",
    "sentinel",
    "memory",
    "sqs",
)


def database(url: str) -> dict[str, Any]:
    """Return the database of DATABASE_URL in Django's form."""
    engine = environ.Env.DB_SCHEMES.get(url.partition("://")[0], "")
    try:
        if engine.endswith(("sqlite3", "postgresql")):
            return dict(environ.Env.db_url_config(url))
    except ValueError:  # a port that is not a number, an unclosed bracket
        pass
    raise ImproperlyConfigured(f"DATABASE_URL is not the URL of a database: {DATABASES}")


def server(name: str, url: str, schemes: Iterable[str]) -> str:
    """Return the URL of a server in the variable of this name, or an empty text."""
    scheme, separator, rest = url.partition("://")
    if url and not (separator and rest and scheme in schemes):
        allowed = ", ".join(f"{one}://" for one in schemes)
        raise ImproperlyConfigured(
            f"{name} is not the URL of a server: it must begin with {allowed}"
        )
    return url


def apps(named: Iterable[str]) -> list[str]:
    """Return the apps of A2A_APPS, which contain the agents."""
    found = [name.strip() for name in named if name.strip()]
    for name in found:
        if not _is_there(name):
            raise ImproperlyConfigured(
                f"A2A_APPS names {name!r}, and there is no such module: it lists Django apps, separated by commas"
            )
    return found


def _is_there(name: str) -> bool:
    package, _, last = name.rpartition(".")
    try:
        return find_spec(package if last[:1].isupper() else name) is not None
    except (ModuleNotFoundError, ValueError):
        return False
