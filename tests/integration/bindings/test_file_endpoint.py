"""Downloads: who gets a file, in which form, and that everything else is the same 404."""

from __future__ import annotations

import base64
import hashlib
import itertools
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files.storage import storages
from pytest_django import Settings

from a2a_project.asgi import application
from a2a_tasks import pubsub
from a2a_tasks.access import api_keys, grants, token_buckets
from a2a_tasks.agents import Agent, Skill, Turn, registry
from a2a_tasks.bindings.file_endpoint import ByteRange, span
from a2a_tasks.models import StoredFile, Task
from a2a_tasks.store import clock, file_links
from a2a_tasks.store.db import run_in_thread
from tests.support.bindings.client import Client, Response
from tests.support.bindings.peers import message, no_leak
from tests.support.rows import rows

CONTENT = bytes(range(256)) * 1024
_names = itertools.count(1)


class Keeper(Agent, abstract=True):
    """Takes everything, and says nothing of it."""

    slug = "keeper"
    name = "Keeper"
    description = "Keeps."
    default_input_modes = ("*/*",)
    skills = [Skill("keep", "Keep", "Keeps", tags=["test"])]

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        yield "kept"


@pytest.fixture(autouse=True)
def keeper(host: None) -> Iterator[None]:
    """Host it."""
    registry._found["keeper"] = Keeper()
    yield
    del registry._found["keeper"]


async def sent(
    client: Client, *, headers: dict[str, str] | None = None, **about: Any
) -> dict[str, Any]:
    """The part that a client is answered that has sent a large file."""
    raw = base64.b64encode(CONTENT).decode()
    part = {"raw": raw, "filename": "a.png", "mediaType": "image/png", **about}
    given = {"a2a-version": "1.0", **(headers or {})}
    answer = await client.post("/agents/keeper/message:send", message(parts=[part]), given)
    assert answer.status == 200, answer.body
    (found,) = answer.json["task"]["history"][0]["parts"]
    return dict(found)


def path_of(part: dict[str, Any]) -> str:
    return str(part["url"]).removeprefix("http://localhost:8000")


async def download(client: Client, **about: Any) -> Response:
    """The file, as it was sent."""
    return await client.get(path_of(await sent(client, **about)))


@pytest.fixture
async def path(client: Client) -> str:
    """Where a file is."""
    return path_of(await sent(client))


class TestAFile:
    async def test_comes_whole_with_its_digest(self, client: Client) -> None:
        answer = await download(client)
        assert (answer.status, answer.body) == (200, CONTENT)
        assert answer.header("content-length") == str(len(CONTENT))
        assert answer.header("etag") == f'"{hashlib.sha256(CONTENT).hexdigest()}"'

    async def test_is_never_shown_by_a_browser_as_a_page_of_the_host(self, client: Client) -> None:
        answer = await download(client)
        assert answer.header("content-disposition") == "attachment; filename*=UTF-8''a.png"
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("content-security-policy") == "sandbox; default-src 'none'"
        assert (answer.header("cache-control") or "").startswith("private")

    @rows(
        ("said", "shown"),
        [
            ("image/png", "image/png"),
            ("Application/JSON; charset=utf-8", "application/json"),
            ("video/mp4", "video/mp4"),
            ("text/html", "application/octet-stream"),
            ("image/svg+xml", "application/octet-stream"),
            ("text/javascript", "application/octet-stream"),
            ("application/xhtml+xml", "application/octet-stream"),
            ("text/css", "application/octet-stream"),
            ("image/png\r\nset-cookie: a=b", "application/octet-stream"),
            ("nonsense", "application/octet-stream"),
            ("video/" + "x" * 101, "application/octet-stream"),
            ("audio/\u00e4", "application/octet-stream"),
        ],
    )
    async def test_is_called_what_it_is_only_where_nothing_of_it_can_run(
        self, client: Client, path: str, said: str, shown: str
    ) -> None:
        await run_in_thread(lambda: StoredFile.objects.update(media_type=said))
        answer = await client.ask("HEAD", path)
        assert answer.header("content-type") == shown

    @rows(
        ("name", "shown"),
        [
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\ä b.txt", "%C3%A4%20b.txt"),
            ('a"; filename=b', "a%22%3B%20filename%3Db"),
            ("a\r\nset-cookie: x", "aset-cookie%3A%20x"),
            ("\u202egnp.exe", "gnp.exe"),
        ],
    )
    async def test_has_a_name_that_is_only_a_name(
        self, client: Client, path: str, name: str, shown: str
    ) -> None:
        await run_in_thread(lambda: StoredFile.objects.update(filename=name))
        answer = await client.ask("HEAD", path)
        assert answer.header("content-disposition") == f"attachment; filename*=UTF-8''{shown}"

    async def test_has_a_head(self, client: Client) -> None:
        answer = await client.ask("HEAD", path_of(await sent(client)))
        assert (answer.status, answer.body) == (200, b"")
        assert answer.header("content-length") == str(len(CONTENT))

    @rows(
        ("asked", "status", "body"),
        [
            ("bytes=0-9", 206, CONTENT[:10]),
            ("bytes=262100-", 206, CONTENT[262100:]),
            ("bytes=-5", 206, CONTENT[-5:]),
            ("bytes=262140-999999", 206, CONTENT[262140:]),
            ("bytes=262144-", 416, b""),
            ("bytes=-0", 416, b""),
            ("bytes=5-1", 200, CONTENT),
            ("bytes=0-1,4-5", 200, CONTENT),
            ("pages=1-2", 200, CONTENT),
            ("bytes=-", 200, CONTENT),
        ],
    )
    async def test_comes_in_ranges(
        self, client: Client, path: str, asked: str, status: int, body: bytes
    ) -> None:
        answer = await client.get(path, {"range": asked})
        assert (answer.status, answer.body) == (status, body)

    def test_a_range_says_which_bytes_of_how_many(self) -> None:
        assert (b"content-range", b"bytes 3-5/10") in span("bytes=3-5", 10).headers
        assert (b"content-range", b"bytes */10") in span("bytes=10-", 10).headers
        assert span("", 10) == ByteRange(200, 0, 10, 10)


class TestAURL:
    async def test_is_the_same_for_everybody_who_asks_soon_after(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_FILE_URL_SECONDS = 10_000_000
        part = await sent(client)
        task = await run_in_thread(lambda: Task.objects.get().public_id)
        read = await client.get(f"/agents/keeper/tasks/{task}", {"a2a-version": "1.0"})
        assert read.json["history"][0]["parts"] == [part]

    async def test_is_below_the_public_url(self, client: Client, settings: Settings) -> None:
        settings.A2A_PUBLIC_URL = "https://agents.example.com/base/"
        part = await sent(client)
        assert part["url"].startswith("https://agents.example.com/base/agents/keeper/files/")

    @rows("seconds", [1, 60, 3600])
    def test_is_good_for_as_long_as_set_and_no_longer_than_twice(
        self, seconds: int, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_FILE_URL_SECONDS = seconds
        for now in (1_000_000_000.0, 1_000_000_000.0 + seconds - 0.5, 1_000_000_007.7):
            monkeypatch.setattr(clock, "estimate", lambda now=now: now)
            url = urlsplit(file_links.make_linker("keeper", "", "")("0" * 32))
            expires = int(parse_qs(url.query)["expires"][0])
            assert now + seconds <= expires <= now + 2 * seconds

    async def test_survives_the_rotation_of_the_key(
        self, client: Client, settings: Settings
    ) -> None:
        path = path_of(await sent(client))
        old, settings.SECRET_KEY = settings.SECRET_KEY, "another"
        assert (await client.get(path)).status == 404
        settings.SECRET_KEY_FALLBACKS = [old]
        assert (await client.get(path)).status == 200


async def refused(client: Client, path: str, headers: dict[str, str] | None = None) -> bytes:
    """The 404 of a path, its headers and all."""
    answer = await client.get(path, headers)
    assert answer.status == 404, path
    no_leak(answer.body)
    return repr((answer.headers, answer.body)).encode()


class TestNothing:
    async def test_is_what_wrong_expired_foreign_and_missing_urls_lead_to(
        self, client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = path_of(await sent(client))
        before, _, query = path.partition("?")
        agent, _, file = before.rpartition("/")
        said = parse_qs(query)
        expires, signature = said["expires"][0], said["signature"][0]
        links = file_links.make_linker("keeper", "", "")
        nothing = await refused(client, "/agents/keeper/files/" + "0" * 32)
        wrong = [
            before,
            f"{before}?expires={int(expires) + 1}&signature={signature}",
            f"{before}?expires={expires}&signature={signature[:-1]}",
            f"{before}?expires={expires}&signature=",
            f"{before}?signature={signature}",
            f"{before}?expires=%00&signature=%ff",
            f"{before}?expires={'9' * 5000}&signature=x",
            f"{before}?expires=%D9%A1&signature=x",
            f"{agent}/{'0' * 32}?{query}",
            f"/agents/demo/files/{file}?{query}",
            links("f" * 32),
        ]
        assert [await refused(client, url) for url in wrong] == [nothing] * len(wrong)
        signed_for_another = file_links.make_linker("demo", "", "")(file)
        assert await refused(client, signed_for_another) == nothing
        monkeypatch.setattr(clock, "estimate", lambda: float(expires))
        assert await refused(client, path) == nothing
        monkeypatch.undo()
        assert (await client.get(path)).status == 200
        await run_in_thread(lambda: StoredFile.objects.update(task=None))
        assert await refused(client, path) == nothing

    async def test_is_where_the_bytes_are_gone(self, client: Client) -> None:
        path = path_of(await sent(client))
        row = await run_in_thread(StoredFile.objects.get)
        storages["a2a_files"].delete(row.name)
        assert await refused(client, path) == await refused(
            client, "/agents/keeper/files/" + "0" * 32
        )


async def key() -> dict[str, str]:
    made = await run_in_thread(api_keys.issue, f"client {next(_names)}")
    return {"x-api-key": made.key}


class TestMetered:
    @pytest.fixture(autouse=True)
    def nobody_came_yet(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also as far as Redis knows."""
        host = uuid.uuid4().hex
        monkeypatch.setattr(pubsub, "prefix", lambda: host)
        monkeypatch.setattr(token_buckets, "PATIENCE_SECONDS", 30.0)

    async def test_downloads_by_a_url_count_for_the_address_and_for_the_agent(
        self, client: Client, settings: Settings
    ) -> None:
        url = path_of(await sent(client))
        settings.A2A_RATE_PER_CALLER = "2/h"
        answers = [await client.get(url) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert int(answers[2].header("retry-after") or 0) > 0
        settings.A2A_RATE_PER_CALLER, settings.A2A_RATE_PER_AGENT = "", "1/h"
        assert [(await client.get(url)).status for _ in range(2)] == [200, 429]

    async def test_a_url_nobody_signed_uses_up_nothing(
        self, client: Client, settings: Settings
    ) -> None:
        url = path_of(await sent(client))
        settings.A2A_RATE_PER_AGENT = "1/h"
        for _ in range(3):
            assert (await client.get(url[:-1])).status == 404
        assert (await client.get(url)).status == 200


class TestListed:
    """Files of an agent that is there for those alone it was granted to."""

    @pytest.fixture(autouse=True)
    def granted(self, settings: Settings) -> None:
        settings.A2A_GRANTS = "listed"

    async def owned(self, client: Client) -> tuple[str, dict[str, str]]:
        """The path of a file, and the credentials of whose it is."""
        alice = await run_in_thread(api_keys.issue, "alice")
        await run_in_thread(grants.grant, "keeper", api_keys.principal_of(alice.row), "use")
        headers = {"x-api-key": alice.key}
        return path_of(await sent(client, headers=headers)), headers

    async def test_a_url_opens_to_whoever_was_given_it(self, client: Client) -> None:
        path, _ = await self.owned(client)
        assert (await client.get(path)).body == CONTENT

    async def test_without_the_signature_the_agent_is_missing(self, client: Client) -> None:
        path, _ = await self.owned(client)
        unsigned = path.partition("?")[0]
        missing = await refused(client, unsigned.replace("keeper", "missing"))
        assert await refused(client, unsigned) == missing
        assert await refused(client, path.replace("keeper", "missing")) == missing
        wrong = {"x-api-key": "a2a_wrong_wrong"}
        assert await refused(client, unsigned, wrong) == missing

    async def test_authenticated_urls_ask_for_the_grant(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_FILE_URLS = "authenticated"
        path, alice = await self.owned(client)
        assert (await client.get(path, alice)).body == CONTENT
        bob = await key()
        assert await refused(client, path, bob) == await refused(
            client, path.replace("keeper", "missing"), bob
        )


class TestAuthenticated:
    async def test_a_url_opens_to_the_caller_it_was_made_for_alone(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_FILE_URLS = "authenticated"
        alice, bob = await key(), await key()
        path = path_of(await sent(client, headers=alice))
        assert (await client.get(path, alice)).body == CONTENT
        nothing = await refused(client, "/agents/keeper/files/" + "0" * 32, bob)
        assert await refused(client, path, bob) == nothing
        assert await refused(client, path) == nothing, "nobody is not alice"

    def test_a_name_that_begins_with_another_is_not_taken_for_it(self, settings: Settings) -> None:
        """What a principal is called may hold what stands before a signature."""
        settings.A2A_FILE_URLS = "authenticated"
        url = urlsplit(file_links.make_linker("keeper", "", "jwt:issuer alice:x")("f" * 32))
        said = {name: value for name, (value,) in parse_qs(url.query).items()}
        bent = {**said, "signature": f"x:{said['signature']}"}
        assert file_links.is_signed("keeper", "f" * 32, **said, principal="jwt:issuer alice:x")
        assert not file_links.is_signed("keeper", "f" * 32, **bent, principal="jwt:issuer alice")

    async def test_wrong_credentials_and_none_learn_nothing_of_a_file(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_FILE_URLS = "authenticated"
        alice = await key()
        path = path_of(await sent(client, headers=alice))
        settings.A2A_ANONYMOUS = "0"
        for headers in ({}, {"x-api-key": "a2a_wrong_wrong"}):
            there = await client.get(path, headers)
            missing = await client.get("/agents/keeper/files/" + "0" * 32, headers)
            assert there.status == 401
            assert (there.body, there.headers) == (missing.body, missing.headers)


async def test_a_tenant_called_files_has_its_routes(client: Client) -> None:
    answer = await Client(application).get("/agents/keeper/files/tasks", {"a2a-version": "1.0"})
    assert (answer.status, answer.json["tasks"]) == (200, [])
