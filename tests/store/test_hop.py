"""Hops: connections that stay, and are replaced when the server has hung up."""

from __future__ import annotations

import asyncio

import pytest
from django.db import connection

from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.hop import hop


def ask() -> int:
    """Which server process answers."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return int(pid)


def end(pids: list[int]) -> None:
    """Have the server hang up on these, and wait until it has (a minute at most)."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pid, 60000) from unnest(%s) as pid", [pids])


@pytest.mark.django_db(transaction=True)
class TestHop:
    async def test_a_database_error_is_told_as_overload(self) -> None:
        def work() -> None:
            connection.close()
            with connection.cursor() as cursor:
                cursor.execute("select * from no_such_table")

        with pytest.raises(Exception) as caught:
            await hop(work)
        if connection.vendor == "sqlite":
            assert isinstance(caught.value, Overloaded)

    @pytest.mark.backend("stack")
    async def test_a_connection_the_server_ended_costs_no_request(self) -> None:
        """After a restart or a failover every thread's connection is dead; nobody is to pay for that."""
        pids = await asyncio.gather(*(hop(ask) for _ in range(32)))
        await asyncio.to_thread(end_and_close, sorted(set(pids)))
        again = await asyncio.gather(*(hop(ask) for _ in range(64)))
        assert not set(again) & set(pids)


def end_and_close(pids: list[int]) -> None:
    """`end`, over a connection of this thread's own."""
    try:
        end(pids)
    finally:
        connection.close()
