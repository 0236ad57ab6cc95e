"""Variables of the environment that are easily mistyped: what is wrong is said in one line, with how it should look.

Passwords are in some of them, so no message repeats a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

__all__ = ["apps", "database", "server"]

#: How the URLs of the databases look that the host knows.
DATABASES = "postgres://USER:PASSWORD@HOST:5432/NAME or sqlite:////PATH/TO/FILE"


def database(url: str) -> dict[str, Any]:
    """The database of DATABASE_URL, as Django wants it."""
    engine = environ.Env.DB_SCHEMES.get(url.partition("://")[0], "")
    try:
        if engine.endswith(("sqlite3", "postgresql")):
            return dict(environ.Env.db_url_config(url))
    except ValueError:  # a port that is no number, a bracket that is not closed
        pass
    raise ImproperlyConfigured(f"DATABASE_URL is not the URL of a database: {DATABASES}")


def server(name: str, url: str, schemes: Iterable[str]) -> str:
    """The URL of a server in the variable of this name, or nothing."""
    scheme, separator, rest = url.partition("://")
    if url and not (separator and rest and scheme in schemes):
        known = ", ".join(f"{one}://" for one in schemes)
        raise ImproperlyConfigured(f"{name} is not the URL of a server: it begins with {known}")
    return url


def apps(named: Iterable[str]) -> list[str]:
    """The apps of A2A_APPS, which hold the agents."""
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
