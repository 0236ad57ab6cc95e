"""The shipped nginx before a real host: what passes through it, what it keeps away, and whom the host sees."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2
from h2 import events

from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry
from lab.server.nginx import NAME, Nginx
from tests.journeys.fixtures import Ask
from tests.journeys.hosts import Host, host
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import Plain, message
from tests.support.grpc_server.client import Client
from tests.support.ports import free_port

pytestmark = [pytest.mark.nginx, pytest.mark.usefixtures("emptied"), pytest.mark.timeout(300)]
SERVICE = "/lf.a2a.v1.A2AService"
SEND = "/agents/demo/message:send"
#: What the host believes of its proxy, and of nobody else.
BEHIND = {
    "TRUSTED_PROXIES": "127.0.0.1",
    "A2A_MTLS_PEERS": "127.0.0.1",
    "A2A_METRICS_PEERS": "127.0.0.1",
    "A2A_DOORS": "ag-ui",
    "A2A_GRPC_CONNECTIONS_PER_ADDRESS": "0",
    "A2A_MAX_STREAMS_PER_TENANT": "4",
    "A2A_KEEPALIVE_SECONDS": "120",  # a comment to a client that left would also end its stream
}
MB = 1024 * 1024


@pytest.fixture(scope="module")
def port() -> int:
    """The port of the proxy."""
    return free_port()


@pytest.fixture(scope="module")
def site(emptied: None, port: int) -> Iterator[Host]:
    """A host with gRPC, whose cards name the proxy for it."""
    with host({**BEHIND, "A2A_GRPC_URL": f"https://{NAME}:{port}"}, grpc=True) as made:
        yield made


@pytest.fixture(scope="module")
def proxy(site: Host, port: int) -> Iterator[Nginx]:
    """The proxy before it."""
    with Nginx(int(site.here.rpartition(":")[2]), site.grpc, port) as made:
        yield made


@asynccontextmanager
async def client(proxy: Nginx, own: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    """A client of HTTP/2, from an address of its own: its limits concern no other test."""
    wire = httpx.AsyncHTTPTransport(verify=proxy.trusting(), http2=True, local_address=own)
    url = f"https://{NAME}:{proxy.port}"
    async with httpx.AsyncClient(transport=wire, base_url=url, timeout=PATIENCE) as http:
        yield http


@asynccontextmanager
async def connected(
    proxy: Nginx, own: str, protocol: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of TLS, from an address of its own."""
    context = proxy.trusting()
    context.set_alpn_protocols([protocol])
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", proxy.port, ssl=context, server_hostname=NAME, local_addr=(own, 0)
    )
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@asynccontextmanager
async def h2(proxy: Nginx, own: str) -> AsyncIterator[Client]:
    """A client of HTTP/2 that does what it is told."""
    async with connected(proxy, own, "h2") as (reader, writer):
        made = Client(reader, writer)
        made.hello()
        yield made


def head(size: int) -> bytes:
    """The head of a request with a body of so many bytes."""
    return f"POST {SEND} HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {size}\r\n\r\n".encode()


def calling(proxy: Nginx) -> grpc.aio.Channel:
    """A channel of gRPC to the proxy."""
    trusted = grpc.ssl_channel_credentials(proxy.authority.read_bytes())
    return grpc.aio.secure_channel(f"{NAME}:{proxy.port}", trusted)


def said(text: str) -> bytes:
    """A request of gRPC with a message."""
    asked = a2a_pb2.Message(message_id="m", role=a2a_pb2.ROLE_USER, parts=[{"text": text}])
    return a2a_pb2.SendMessageRequest(message=asked).SerializeToString()


async def call(channel: grpc.aio.Channel, text: str) -> Any:
    """The answer to a message over gRPC."""
    send: Any = channel.unary_unary(f"{SERVICE}/SendMessage")
    return a2a_pb2.SendMessageResponse.FromString(await send(said(text), timeout=PATIENCE))


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Everything until the other side closes, however it does."""
    found = b""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(OSError, ssl.SSLError):
            while piece := await reader.read(65_536):
                found += piece
    return found


def stream(http: Client) -> int:
    """Begin a stream of events; returns its number."""
    path = {":path": "/agents/demo/message:stream", ":authority": NAME}
    number = http.call(headers={**path, "content-type": "application/json"}, end=False)
    http.h2.send_data(number, json.dumps(message("sleep 60")).encode(), end_stream=True)
    http.send()
    return number


async def status(http: Client, number: int) -> str:
    """The status of an answer, which may go on."""
    answer = await http.until(events.ResponseReceived, number)
    return str(dict(answer.headers)[":status"])


class TestWhatPasses:
    async def test_events_while_the_agent_still_runs(self, proxy: Nginx) -> None:
        async with client(proxy) as http:
            demo = Plain(http, "", "demo")
            async with demo.stream("count 2 60") as stream:
                while not any("artifactUpdate" in event.said for event in stream.seen):
                    await stream.read(until=stream.last + 1 if stream.seen else 0)
                assert (await demo.get(stream.task_id))["status"]["state"] == "TASK_STATE_WORKING"
                await demo.cancel(stream.task_id)
                await stream.read()
        assert "CANCELED" in str(stream.seen[-1].said)

    async def test_runs_of_ag_ui_whose_lines_end_as_its_client_needs(self, proxy: Nginx) -> None:
        """It fails at the first CR."""
        said = [{"id": "1", "role": "user", "content": "chunks 20"}]
        run = {"threadId": "thread", "runId": "run", "messages": said}
        async with client(proxy) as http:
            answer = await http.post("/agents/demo/ag-ui", json=run)
        assert b"\r" not in answer.content
        kinds = [json.loads(line[6:])["type"] for line in answer.text.split("\n\n")[:-1]]
        assert (kinds[0], kinds[-1]) == ("RUN_STARTED", "RUN_FINISHED")

    async def test_calls_and_streams_of_grpc(self, proxy: Nginx) -> None:
        async with calling(proxy) as channel:
            answer = await call(channel, "echo hello")
            assert answer.task.status.state == a2a_pb2.TASK_STATE_COMPLETED
            stream: Any = channel.unary_stream(f"{SERVICE}/SendStreamingMessage")
            items = stream(said("count 2 60"), timeout=PATIENCE)
            task = a2a_pb2.StreamResponse.FromString(await items.read()).task
            while not a2a_pb2.StreamResponse.FromString(await items.read()).HasField(
                "artifact_update"
            ):
                pass
            cancel: Any = channel.unary_unary(f"{SERVICE}/CancelTask")
            await cancel(a2a_pb2.CancelTaskRequest(id=task.id).SerializeToString())
            while item := await items.read():
                last = a2a_pb2.StreamResponse.FromString(item)
            assert last.status_update.status.state == a2a_pb2.TASK_STATE_CANCELED

    async def test_the_end_of_a_client(self, proxy: Nginx) -> None:
        """Until then its streams count at the host."""
        async with h2(proxy, "127.0.0.1") as http:
            begun = [stream(http) for _ in range(9)]
            lasting = [each for each in begun if await status(http, each) == "200"]
            assert 0 < len(lasting) <= 4
            for each in lasting:
                http.h2.reset_stream(each)
            http.send()

            async def is_free() -> bool:
                return await status(http, stream(http)) == "200"

            await eventually(is_free, "the host knows that the streams are gone")

        async def all_are_free() -> bool:
            async with h2(proxy, "127.0.0.1") as http:
                return {await status(http, stream(http)) for _ in range(4)} == {"200"}

        await eventually(all_are_free, "the host knows that the connection is gone")


class TestWhomTheHostSees:
    async def test_it_answers_for_https(self, proxy: Nginx) -> None:
        async with client(proxy) as http:
            answer = await http.get(
                "/agents/demo/.well-known/agent-card.json", headers={"X-Forwarded-Proto": "http"}
            )
        assert answer.http_version == "HTTP/2"
        interfaces = answer.json()["supportedInterfaces"]
        assert {each["protocolBinding"] for each in interfaces} == {"JSONRPC", "HTTP+JSON", "GRPC"}
        assert all(each["url"].startswith("https://") for each in interfaces)

    async def test_the_address_of_the_connection_and_none_that_was_forged(
        self, proxy: Nginx, ask: Ask
    ) -> None:
        forged = {"X-Forwarded-For": "203.0.113.9", "X-API-Key": "a2a_wrong_wrong"}
        async with client(proxy, "127.0.0.21") as http:
            assert (await http.post(SEND, json=message("echo"), headers=forged)).status_code == 401

        def refused() -> list[str]:
            rows = AuditEntry._default_manager.filter(action=Action.ACCESS_REFUSED)
            return [json.loads(row.detail)["address"] for row in rows]

        assert await eventually(lambda: ask(refused), "an entry in the audit log") == ["127.0.0.21"]

    async def test_no_certificate_that_was_forged(self, site: Host, proxy: Nginx) -> None:
        forged = {"Client-Cert": "forged"}
        async with client(proxy) as http:
            assert (await http.post(SEND, json=message("echo"), headers=forged)).status_code == 200
            answer = await http.post(site.here + SEND, json=message("echo"), headers=forged)
            assert answer.status_code == 401  # by itself the host would look at it


class TestWhatIsRefused:
    async def test_http_without_tls(self, proxy: Nginx) -> None:
        async with httpx.AsyncClient(timeout=PATIENCE) as http:
            answer = await http.post(f"http://127.0.0.1:{proxy.plain_port}{SEND}", json={})
        assert answer.status_code == 301
        assert answer.headers["Location"] == f"https://{NAME}{SEND}"

    async def test_a_body_that_is_too_large(self, proxy: Nginx) -> None:
        async with client(proxy) as http:
            fits = await http.post(SEND, content=b" " * 4 * MB)
            assert fits.status_code == 400  # by the host: it is not JSON
        async with connected(proxy, "127.0.0.1", "http/1.1") as (reader, writer):
            writer.write(head(4 * MB + 1))
            assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        async with calling(proxy) as channel:
            send: Any = channel.unary_unary(f"{SERVICE}/SendMessage")
            for size, code in (
                (4 * MB, grpc.StatusCode.INVALID_ARGUMENT),  # by the host: it is no message
                (4 * MB + 1, grpc.StatusCode.RESOURCE_EXHAUSTED),  # by the host, too
            ):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await send(b"\xff" * size, timeout=PATIENCE)
                assert caught.value.code() is code

    async def test_pages_of_staff_and_metrics(self, site: Host, proxy: Nginx) -> None:
        async with client(proxy) as http:
            for path, status in (("/admin/", 403), ("/x/..//%61dmin/", 403), ("/metrics", 404)):
                assert (await http.get(path)).status_code == status
            assert (await http.get(f"{site.here}/metrics")).status_code == 200


class TestSlowClients:
    async def test_are_cut_off(self, proxy: Nginx) -> None:
        """All at once: each takes the ten seconds of the configuration."""

        async def send_no_handshake() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            try:
                return await rest(reader)
            finally:
                writer.close()

        async def drip_a_head() -> bytes:
            async with connected(proxy, "127.0.0.1", "http/1.1") as (reader, writer):
                writer.write(f"POST {SEND} HTTP/1.1\r\nHost: {NAME}\r\nX-Slow: ".encode())
                ended = asyncio.create_task(rest(reader))
                while not (await asyncio.wait({ended}, timeout=0.5))[0]:
                    writer.write(b"x")
                return await ended

        async def begin_a_body() -> bytes:
            async with connected(proxy, "127.0.0.1", "http/1.1") as (reader, writer):
                writer.write(head(9) + b"x")
                return await rest(reader)

        async def begin_a_message() -> None:
            async with h2(proxy, "127.0.0.1") as http:
                stream = http.call(headers={":path": f"{SERVICE}/SendMessage"}, end=False)
                http.h2.send_data(stream, b"\0\0\0\0\x09x")
                http.send()
                await http.until(events.StreamReset, stream)

        slow = send_no_handshake(), drip_a_head(), begin_a_body(), begin_a_message()
        assert list(await asyncio.gather(*slow)) == [b"", b"", b"", None]


class TestFloods:
    """Each from an address of its own. Others are served meanwhile."""

    async def test_of_requests(self, proxy: Nginx) -> None:
        async with client(proxy, "127.0.0.41") as flood, client(proxy) as other:
            answers: list[httpx.Response] = []
            async with asyncio.timeout(PATIENCE):
                while all(answer.status_code == 200 for answer in answers):
                    answers = await asyncio.gather(*(flood.get("/healthz") for _ in range(50)))
            assert (await other.get("/healthz")).status_code == 200
        assert {answer.status_code for answer in answers} <= {200, 429}
        turned_away = next(answer for answer in answers if answer.status_code == 429)
        assert turned_away.headers["Server"] == "nginx"
        assert turned_away.headers["Retry-After"] == "1"

    async def test_of_requests_at_once(self, proxy: Nginx) -> None:
        post = {":path": SEND, ":authority": NAME, "content-length": "9"}
        async with (
            h2(proxy, "127.0.0.42") as first,
            h2(proxy, "127.0.0.42") as second,
            asyncio.timeout(PATIENCE),
        ):
            for each in (first, second):
                for _ in range(50):
                    each.call(headers=post, end=False)
            while 'by zone "a2a_requests_at_once", client: 127.0.0.42' not in proxy.log:
                await second.status(second.call(headers=post, end=False))
        async with client(proxy) as other:
            assert (await other.get("/healthz")).status_code == 200

    async def test_of_resets(self, proxy: Nginx) -> None:
        """nginx ends the connection after the 1,000 requests of the configuration, or after 100 streams too many."""
        began = time.monotonic()
        async with h2(proxy, "127.0.0.43") as flood, calling(proxy) as channel:
            for _ in range(1500):
                stream = flood.call(headers={":path": f"{SERVICE}/SendMessage"}, end=False)
                flood.h2.reset_stream(stream)
            flood.send()
            answer = await call(channel, "echo hello")
            assert answer.task.status.state == a2a_pb2.TASK_STATE_COMPLETED
            await rest(flood.reader)
        lines = [line for line in proxy.requests() if line.startswith("127.0.0.43 ")]
        assert len(lines) <= 1000
        passed = [line for line in lines if " 429 " not in line]
        assert len(passed) <= 101 + 50 * (time.monotonic() - began)

    @pytest.mark.parametrize(
        "frame",
        [b"\0\0\x08\x06\0\0\0\0\0" + bytes(8), b"\0\0\0\x04\0\0\0\0\0"],
        ids=["pings", "settings"],
    )
    async def test_of_frames_that_must_be_answered(self, proxy: Nginx, frame: bytes) -> None:
        async with h2(proxy, "127.0.0.44") as flood, client(proxy) as other:
            flood.send(frame * (16 * MB // len(frame)))
            ended = asyncio.create_task(rest(flood.reader))
            assert (await other.get("/healthz")).status_code == 200
            await ended
