"""The host's part of the settings of a Django project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured

from a2a_project import __version__, defaults
from a2a_project.log_format import make_logging

__all__ = ["install"]

#: The apps, after those of the project: its templates and commands come first.
APPS = ("a2a_console", "drf_spectacular_sidecar", "a2a_tasks", "a2a_push", "a2a_project")
#: Middleware for the host's pages alone, before and after that of the project.
BEFORE = ("a2a_project.page_headers.PageHeaders",)
AFTER = (
    "a2a_tasks.access.staff.audit_staff",
    "a2a_project.fault_pages.FaultPages",
)
STATIC_FILES = "a2a_project.static_files.StaticFiles"
#: The databases that the host can use, by parts of their engines' names.
ENGINES = ("sqlite", "spatialite", "postgres", "postgis")


def install(settings: dict[str, Any], *, prefix: str = "/a2a") -> None:
    """Add the host to the settings of a project, below a path of the site.

    Apps, middleware, a storage, a cache and options of the database are added; nothing that is there is replaced.
    Raises ImproperlyConfigured for settings that the host cannot work with.
    """
    _refuse(settings, prefix)
    settings["INSTALLED_APPS"] = _add(settings["INSTALLED_APPS"], APPS)
    middleware = settings["MIDDLEWARE"]
    if not any("whitenoise" in name.lower() for name in middleware):
        settings.setdefault("WHITENOISE_USE_FINDERS", True)
        middleware = _add(middleware, [STATIC_FILES])
    settings["MIDDLEWARE"] = [*_add(BEFORE, _add(middleware, AFTER))]
    settings["DATABASES"]["default"]["OPTIONS"] = defaults.connect(settings["DATABASES"]["default"])
    directory = os.environ.get("VAR_DIR") or Path(settings.get("BASE_DIR", ".")) / "var"
    own = {
        "A2A_PREFIX": prefix,
        "A2A_HOST_VERSION": __version__,
        "A2A_CELERY_BROKER_URL": os.environ.get("A2A_CELERY_BROKER_URL", ""),
        "REDIS_URL": os.environ.get("REDIS_URL", ""),
        "VAR_DIR": Path(directory).resolve(),
        "ASGI_APPLICATION": f"{settings['ROOT_URLCONF'].rpartition('.')[0]}.asgi.application",
    }
    if style := os.environ.get("A2A_LOG_FORMAT"):
        own["LOGGING"] = make_logging(os.environ.get("LOG_LEVEL") or "INFO", style)
    for name, value in own.items():
        settings.setdefault(name, value)
    files = defaults.keep_files(settings["VAR_DIR"] / "files")
    hooks = defaults.keep_hooks(settings["REDIS_URL"])
    settings["STORAGES"] = {
        "a2a_files": files,
        **settings.get("STORAGES", global_settings.STORAGES),
    }
    settings["CACHES"] = {"a2a_playground": hooks, **settings.get("CACHES", global_settings.CACHES)}


def _refuse(settings: Mapping[str, Any], prefix: str) -> None:
    """Raise ImproperlyConfigured if the host cannot be part of this project. The system checks find more."""
    missing = [
        name
        for name in ("INSTALLED_APPS", "MIDDLEWARE", "DATABASES", "ROOT_URLCONF")
        if name not in settings
    ]
    if missing:
        raise ImproperlyConfigured(
            f"a2a_host.install() must come after {missing[0]} in the settings"
        )
    if not prefix.startswith("/") or prefix.endswith("/") or "//" in prefix:
        raise ImproperlyConfigured(f"the prefix must be a path such as '/a2a', not {prefix!r}")
    engine = settings["DATABASES"].get("default", {}).get("ENGINE", "")
    if not any(name in engine for name in ENGINES):
        raise ImproperlyConfigured(f"the host works on PostgreSQL and SQLite, not on {engine!r}")
    if not settings.get("USE_TZ", True):
        raise ImproperlyConfigured("the host needs USE_TZ = True: it stores times in UTC")


def _add(names: Iterable[str], more: Iterable[str]) -> list[str]:
    """Return all names in their order, each once."""
    return list(dict.fromkeys([*names, *more]))
