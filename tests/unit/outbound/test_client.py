"""The way out by a proxy, and faults of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from a2a_tasks.outbound import (
    Client,
    ClientLimits,
    FaultKind,
    Guard,
    NameNotResolved,
    OutboundPolicy,
    Unanswered,
    make_tls_context,
)
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
        policy = OutboundPolicy.read(http=True, proxy=f"http://me:secret@proxy.corp:{port}")
        client = Client(
            Guard(policy, resolve),
            limits=ClientLimits(connect=2, total=20),
            tls=make_tls_context(tls_bundle),
        )
        try:
            yield client
        finally:
            await client.close()


class TestAProxy:
    async def test_connects_through_to_names_it_resolves_itself(self, tmp_path: Path) -> None:
        """The tunnel is encrypted to its end: the name on the certificate is the receiver's."""
        authority = Authority(tmp_path)
        async with receivers.farm(authority.server()) as farm:
            proxy = Proxy(farm.port)
            async with at(proxy, str(authority.path)) as client:
                secret = (("Authorization", "Bearer x"),)
                answer = await client.ask("POST", farm.url("/ok", NAME), secret, b"body")
                assert (answer.status, answer.body) == (200, b"thanks")
        (head,) = proxy.heads
        assert head.startswith(f"CONNECT {NAME}:{farm.port} HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in head
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
        assert "Host: a.example:8080\r\n" in head
        assert "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in head

    @pytest.mark.parametrize(
        ("status", "kind"),
        [(403, FaultKind.CONNECT), (407, FaultKind.HOST), (502, FaultKind.CONNECT)],
    )
    async def test_may_refuse(self, status: int, kind: FaultKind) -> None:
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
            policy = OutboundPolicy.read(proxy=f"http://proxy.corp:{port}")
            client = Client(Guard(policy, resolve), tls=make_tls_context())
            with pytest.raises(Unanswered) as caught:
                await client.ask("POST", "https://a.example/")
            await client.close()
        assert caught.value.kind is FaultKind.HOST

    async def test_that_has_no_address_is_no_fault_of_the_receiver(self) -> None:
        async def resolve(name: str) -> tuple[str, ...]:
            raise NameNotResolved(name)

        client = Client(
            Guard(OutboundPolicy.read(proxy="http://proxy.corp:3128"), resolve),
            tls=make_tls_context(),
        )
        with pytest.raises(Unanswered) as caught:
            await client.ask("POST", "https://a.example/")
        assert caught.value.kind is FaultKind.HOST

    async def test_may_not_speak_for_the_receiver(self) -> None:
        """What it adds in clear would be taken for the receiver's answer under TLS."""
        answer = b"HTTP/1.1 200 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        async with at(Proxy(answer=answer)) as client:
            with pytest.raises(Unanswered) as caught:
                await client.ask("POST", "https://a.example/")
        assert caught.value.kind in {FaultKind.CONNECT, FaultKind.TLS, FaultKind.HOST}


class TestThisMachine:
    """What it cannot do is no fault of whom it would call."""

    async def test_without_files_or_ports_left_is_at_fault_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for code, kind in {
            errno.EMFILE: FaultKind.HOST,
            errno.ENETUNREACH: FaultKind.HOST,
            errno.ECONNREFUSED: FaultKind.CONNECT,
            errno.EHOSTUNREACH: FaultKind.CONNECT,
        }.items():
            assert await self.failing(monkeypatch, code, "127.0.0.1") is kind

    async def test_without_ipv6_says_nothing_of_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert await self.failing(monkeypatch, errno.ENETUNREACH, "[::1]") is FaultKind.CONNECT

    @staticmethod
    async def failing(monkeypatch: pytest.MonkeyPatch, code: int, host: str) -> FaultKind:
        """The kind of the fault if the system refuses to connect like this."""

        async def refuse(*_: object) -> None:
            raise OSError(code, "refused")

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(type(loop), "sock_connect", refuse)
        client = Client(Guard(OutboundPolicy.read(loopback=True)), tls=make_tls_context())
        with pytest.raises(Unanswered) as caught:
            await client.ask("POST", f"http://{host}:8080/")
        await client.close()
        return caught.value.kind
