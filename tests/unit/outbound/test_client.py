"""The way out by a proxy, and connections between two calls."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from a2a_tasks.outbound import (
    Client,
    Guard,
    Kind,
    Limits,
    NameNotResolved,
    Policy,
    Unanswered,
    trusting,
)
from a2a_tasks.outbound.idle import Idle
from a2a_tasks.outbound.wire import Wire
from tests.support.push import receivers
from tests.support.push.receivers import NAME, Authority

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Proxy:
    """Connects through to one port of this machine, whatever it is asked for; or answers as it is told."""

    def __init__(self, to: int = 0, answer: bytes = b"") -> None:
        self.heads: list[str] = []
        self._to, self._answer = to, answer

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """One connection."""
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self._answer:
            writer.write(self._answer)
            await reader.read()
        else:
            await self._through(reader, writer)

    async def _through(self, reader: Reader, writer: Writer) -> None:
        inner, out = await asyncio.open_connection("127.0.0.1", self._to)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, out), pump(inner, writer))
        await out.wait_closed()


async def pump(reader: Reader, writer: Writer) -> None:
    """All that comes, on."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def at(proxy: Proxy, tls_bundle: str = "") -> AsyncIterator[Client]:
    """A client that goes out by this proxy, and resolves no other name."""

    async def resolve(name: str) -> tuple[str, ...]:
        assert name == "proxy.corp"
        return ("127.0.0.1",)

    async with receivers.serving(proxy.serve) as port:
        policy = Policy.read(http=True, proxy=f"http://me:secret@proxy.corp:{port}")
        client = Client(Guard(policy, resolve), limits=Limits(total=20), tls=trusting(tls_bundle))
        yield client
        await client.close()


class TestAProxy:
    async def test_connects_through_to_names_it_resolves_itself(self, tmp_path: Path) -> None:
        """The tunnel is encrypted to its end: the name on the certificate is the receiver's."""
        authority = Authority(tmp_path)
        async with receivers.farm(authority.server()) as farm:
            proxy = Proxy(farm.port)
            async with at(proxy, str(authority.bundle)) as client:
                secret = (("Authorization", "Bearer x"),)
                answer = await client.ask("POST", farm.url("/ok", NAME), secret, b"body")
                assert (answer.status, answer.body) == (200, b"thanks")
        (head,) = proxy.heads
        assert head.startswith(f"CONNECT {NAME}:{farm.port} HTTP/1.1\r\n")
        assert "proxy-authorization: Basic bWU6c2VjcmV0\r\n" in head
        assert "Bearer" not in head
        (seen,) = farm.seen
        assert seen.header("authorization") == ["Bearer x"]
        assert seen.header("proxy-authorization") == []

    async def test_is_asked_in_clear_for_what_is_in_clear(self) -> None:
        proxy = Proxy(answer=b"HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n")
        async with at(proxy) as client:
            answer = await client.ask("POST", "http://a.example:8080/x?y")
        assert answer.status == 202
        (head,) = proxy.heads
        assert head.startswith("POST http://a.example:8080/x?y HTTP/1.1\r\n")
        assert "host: a.example:8080\r\n" in head
        assert "proxy-authorization: Basic bWU6c2VjcmV0\r\n" in head

    @pytest.mark.parametrize(
        ("status", "kind"), [(403, Kind.CONNECT), (407, Kind.HOST), (502, Kind.CONNECT)]
    )
    async def test_may_refuse(self, status: int, kind: Kind) -> None:
        proxy = Proxy(answer=f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        async with at(proxy) as client:
            with pytest.raises(Unanswered) as caught:
                await client.ask("POST", "https://a.example/")
        assert caught.value.kind is kind
        assert str(status) in caught.value.detail

    async def test_that_is_away_is_no_fault_of_the_receiver(self) -> None:
        async def resolve(name: str) -> tuple[str, ...]:
            return ("127.0.0.1",)

        with receivers.nobody() as port:
            policy = Policy.read(proxy=f"http://proxy.corp:{port}")
            client = Client(Guard(policy, resolve), tls=trusting())
            with pytest.raises(Unanswered) as caught:
                await client.ask("POST", "https://a.example/")
        assert caught.value.kind is Kind.HOST

    async def test_that_has_no_address_is_no_fault_of_the_receiver(self) -> None:
        async def resolve(name: str) -> tuple[str, ...]:
            raise NameNotResolved(name)

        client = Client(Guard(Policy.read(proxy="http://proxy.corp:3128"), resolve), tls=trusting())
        with pytest.raises(Unanswered) as caught:
            await client.ask("POST", "https://a.example/")
        assert caught.value.kind is Kind.HOST

    async def test_may_not_speak_for_the_receiver(self) -> None:
        """What it adds in clear would be taken for the receiver's answer under TLS."""
        answer = b"HTTP/1.1 200 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        async with at(Proxy(answer=answer)) as client:
            with pytest.raises(Unanswered) as caught:
                await client.ask("POST", "https://a.example/")
        assert caught.value.kind in {Kind.CONNECT, Kind.TLS}


class TestThisMachine:
    """What it cannot do is no fault of whom it would call."""

    async def test_without_files_or_ports_left_is_at_fault_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for code, kind in {
            errno.EMFILE: Kind.HOST,
            errno.ENETUNREACH: Kind.HOST,
            errno.ECONNREFUSED: Kind.CONNECT,
            errno.EHOSTUNREACH: Kind.CONNECT,
        }.items():
            assert await self.failing(monkeypatch, code, "127.0.0.1") is kind

    async def test_without_ipv6_says_nothing_of_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert await self.failing(monkeypatch, errno.ENETUNREACH, "[::1]") is Kind.CONNECT

    @staticmethod
    async def failing(monkeypatch: pytest.MonkeyPatch, code: int, host: str) -> Kind:
        """The kind of the fault if the system refuses to connect like this."""

        async def refuse(*_: object) -> None:
            raise OSError(code, "refused")

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(type(loop), "sock_connect", refuse)
        client = Client(Guard(Policy.read(loopback=True)), tls=trusting())
        with pytest.raises(Unanswered) as caught:
            await client.ask("POST", f"http://{host}:8080/")
        return caught.value.kind


class TestIdleConnections:
    async def wire(self, port: int, peer: str = "127.0.0.1") -> Wire:
        """An open connection."""
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(Wire, "127.0.0.1", port)
        wire.peer = ipaddress.ip_address(peer)
        return wire

    async def test_are_closed_after_a_while(self) -> None:
        async with receivers.farm() as farm:
            idle = Idle(seconds=0.01)
            wire = await self.wire(farm.port)
            idle.keep(("http", "a", 1), wire)
            assert await wire.read() == b""
            assert idle.take(("http", "a", 1), [wire.peer]) is None

    async def test_are_not_more_than_there_may_be(self) -> None:
        async with receivers.farm() as farm:
            idle = Idle(most_each=2, most=3)
            wires = [await self.wire(farm.port) for _ in range(6)]
            for n, wire in enumerate(wires):
                idle.keep(("http", "ab"[n // 3], 1), wire)
            open_ = [not wire.transport.is_closing() for wire in wires]
            assert open_ == [True, True, False, True, False, False]
            idle.close()
            assert all(wire.transport.is_closing() for wire in wires)

    async def test_are_taken_by_the_address_they_lead_to(self) -> None:
        async with receivers.farm() as farm:
            idle = Idle()
            one, two = await self.wire(farm.port), await self.wire(farm.port, "127.0.0.2")
            for wire in (one, two):
                idle.keep(("http", "a", 1), wire)
            assert idle.take(("http", "b", 1), [one.peer]) is None
            assert idle.take(("http", "a", 1), [one.peer]) is one
            assert idle.take(("http", "a", 1), [one.peer]) is None
            assert idle.take(("http", "a", 1), [one.peer, two.peer]) is two
            one.abort()
            two.abort()
