"""Additions of the host to the settings of Django, in its own project and in any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["connect", "keep_files", "keep_hooks"]

#: Options that make SQLite a small server: readers while one process writes, writers that wait their turn, and commits that
#: are on disk when they return (docs/decisions/0002).
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
}
#: Options of libpq for an unreachable server, in seconds (tcp_user_timeout: milliseconds). DATABASE_SECONDS limits the
#: time of an answer.
POSTGRES_OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
FILES = "django.core.files.storage.FileSystemStorage"
MEMORY = "django.core.cache.backends.locmem.LocMemCache"


def connect(database: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a database of DATABASES: its own, and those it lacks."""
    is_sqlite = "sqlite" in database["ENGINE"] or "spatialite" in database["ENGINE"]
    usual = SQLITE_OPTIONS if is_sqlite else POSTGRES_OPTIONS
    return {**usual, **database.get("OPTIONS", {})}


def keep_files(directory: Path, backend: str = FILES, **options: Any) -> dict[str, Any]:
    """Return a storage of STORAGES: by default a directory that only the host's user can read."""
    private = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    usual = {"location": str(directory), **private} if backend == FILES else {}
    return {"BACKEND": backend, "OPTIONS": {**usual, **options}}


def keep_hooks(redis_url: str) -> dict[str, Any]:
    """Return the cache of the playground's notifications, shared by all web processes where there is Redis."""
    if not redis_url:
        return {
            "BACKEND": MEMORY,
            "LOCATION": "a2a_playground",
            "OPTIONS": {"MAX_ENTRIES": 1000},
        }
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": redis_url,
        "KEY_PREFIX": "a2a-playground-json",
        "OPTIONS": {"serializer": "a2a_project.json_cache.JSONSerializer"},
    }
