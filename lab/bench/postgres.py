"""The PostgreSQL server of the run: one fresh database a target, always with synchronous_commit on."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

DEFAULT_URL = "postgres://postgres@127.0.0.1:5432/postgres"
LOCK = 0x0A2A_BE7C


class Server:
    """A superuser's connection (autocommit) and the databases made through it."""

    def __init__(self) -> None:
        self.url = os.environ.get("DATABASE_URL") or DEFAULT_URL
        try:
            self.admin = psycopg.connect(self.url, autocommit=True)
        except psycopg.OperationalError as error:
            raise SystemExit(
                f"bench needs PostgreSQL and a role that may create databases: set DATABASE_URL ({error})"
            ) from None
        if not self._value("select pg_try_advisory_lock(%s)", LOCK):
            raise SystemExit(
                "another bench runs on this PostgreSQL server; its databases must not be dropped under it"
            )
        self.made: set[str] = set()

    def _value(self, query: sql.SQL | str, *args: object) -> object:
        row = self.admin.execute(query, args).fetchone()
        return row[0] if row else None

    def describe(self) -> str:
        """Version and the settings that decide what a commit costs."""
        names = ("server_version", "fsync", "shared_buffers")
        return "PostgreSQL " + ", ".join(
            str(self._value("select current_setting(%s)", n)) if n == "server_version"
            else f"{n} {self._value('select current_setting(%s)', n)}"
            for n in names
        ) + ", synchronous_commit on"  # fmt: skip

    def fresh(self, target: str) -> str:
        """Drop and create the target's database; its URL (scheme postgres://)."""
        name = "a2a_bench_" + target.replace("-", "_")
        self._drop(name)
        self.admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        self.admin.execute(
            sql.SQL("alter database {} set synchronous_commit = on").format(sql.Identifier(name))
        )
        self.made.add(name)
        return urlsplit(self.url)._replace(scheme="postgres", path=f"/{name}").geturl()

    def sessions(self, url: str) -> list[int]:
        """Process ids of the server's backends that work for this database."""
        query = "select pid from pg_stat_activity where datname = %s and backend_type <> 'autovacuum worker'"
        return [row[0] for row in self.admin.execute(query, [urlsplit(url).path.lstrip("/")])]

    def close(self) -> None:
        """Drop what this run made."""
        for name in sorted(self.made):
            self._drop(name)
        self.admin.close()

    def _drop(self, name: str) -> None:
        self.admin.execute(
            sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
        )
