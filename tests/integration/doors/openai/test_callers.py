"""Callers of OpenAI's API: the credentials, grants, rates and tasks are those of A2A."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from prometheus_client import REGISTRY
from pytest_django import Settings

from a2a_tasks import pubsub
from a2a_tasks.access import authentication, token_buckets
from a2a_tasks.access.api_keys import issue
from a2a_tasks.agents import Agent
from a2a_tasks.models import AuditEntry, ChatPrefix, Task
from a2a_tasks.store.db import run_in_thread
from tests.support.access.fixtures import guarded, issuer
from tests.support.access.issuer import Issuer
from tests.support.bindings.client import Client
from tests.support.doors import Chats, user

__all__ = ["guarded", "issuer"]
pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def closed(doors: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is let in without credentials, and nobody has come yet."""
    host = uuid.uuid4().hex
    monkeypatch.setattr(pubsub, "prefix", lambda: host)
    monkeypatch.setattr(token_buckets, "PATIENCE_SECONDS", 30.0)
    settings.A2A_ANONYMOUS = "0"
    authentication.forget()


async def bearer(**about: Any) -> dict[str, str]:
    key = (await run_in_thread(lambda: issue("test", **about))).key
    return {"authorization": f"Bearer {key}"}


class TestCredentials:
    async def test_an_api_key_comes_as_bearer(self, client: Client) -> None:
        chats = Chats(client, "demo", await bearer())
        assert await chats.say("echo hi") == "hi"
        assert (await client.get("/v1/models", chats.headers)).status == 200
        entry = await run_in_thread(lambda: AuditEntry.objects.get(action="task.send"))
        assert entry.actor.startswith("key:")

    async def test_an_api_key_may_come_in_its_own_header(self, client: Client) -> None:
        key = (await bearer())["authorization"].removeprefix("Bearer ")
        assert await Chats(client, "demo", {"x-api-key": key}).say("echo hi") == "hi"

    async def test_a_token_is_a_token(self, client: Client, issuer: Issuer) -> None:
        headers = {"authorization": f"Bearer {issuer.token()}"}
        assert await Chats(client, "demo", headers).say("echo hi") == "hi"

    @pytest.mark.parametrize(
        "value",
        [None, "Bearer ", "Bearer anonymous", "Bearer sk-1", "Bearer a2a_aaaaaaaaaaaa_" + "b" * 43],
    )
    async def test_wrong_ones_are_refused_before_the_body_is_read(
        self, client: Client, value: str | None
    ) -> None:
        headers = {} if value is None else {"authorization": value}
        for path in ("/v1/models", "/v1/chat/completions"):
            method = "GET" if path.endswith("models") else "POST"
            async with client.exchange(method, path, headers) as exchange:
                answer = await exchange.response()
                assert (answer.status, exchange.taken) == (401, 0)
                assert answer.json["error"]["code"] == "invalid_api_key"
                assert answer.header("www-authenticate")

    async def test_an_empty_one_is_none_where_none_is_needed(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        assert await Chats(client, "demo", {"authorization": "Bearer "}).say("echo hi") == "hi"
        no_key = {"authorization": "Bearer anonymous"}
        assert await Chats(client, "demo", no_key).say("echo hi") == "hi"

    async def test_without_a_scope_are_forbidden(self, client: Client, guarded: Agent) -> None:
        answer = await Chats(client, "guarded", await bearer()).ask([user("a")])
        assert (answer.status, answer.json["error"]["code"]) == (403, "insufficient_permissions")


class TestGrants:
    async def test_an_agent_of_others_does_not_exist(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_GRANTS = "listed"
        headers = await bearer()
        assert (await client.get("/v1/models", headers)).json["data"] == []
        answer = await Chats(client, "demo", headers).ask([user("echo hi")])
        assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found")


class TestRates:
    async def test_a_caller_over_its_rate_is_refused_by_its_headers(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_RATE_PER_CALLER = "1/h"
        chats = Chats(client, "demo", await bearer())
        await chats.say("echo hi")
        async with client.exchange("POST", "/v1/chat/completions", chats.headers) as exchange:
            answer = await exchange.response()
        assert (answer.status, exchange.taken) == (429, 0)
        assert answer.json["error"]["code"] == "rate_limit_exceeded"
        assert int(answer.header("retry-after") or 0) > 1

    @pytest.mark.parametrize(("rate", "told"), [("1/h", "false"), ("30/m burst 1", None)])
    async def test_clients_are_told_not_to_sleep_through_a_long_wait(
        self, client: Client, settings: Settings, rate: str, told: str | None
    ) -> None:
        """`openai` of npm sleeps as long as `Retry-After` says, beyond its own timeout and in silence."""
        settings.A2A_RATE_PER_CALLER = rate
        chats = Chats(client, "demo", await bearer())
        await chats.say("echo hi")
        answer = await chats.ask([user("echo again")])
        assert (answer.status, answer.header("x-should-retry")) == (429, told)
        assert (int(answer.header("retry-after") or 0) > 60) == (told is not None)

    async def test_a_request_counts_once(self, client: Client, settings: Settings) -> None:
        settings.A2A_RATE_PER_CALLER = "1/h burst 2"
        chats = Chats(client, "demo", await bearer())
        statuses = [(await chats.ask([user(f"echo {number}")])).status for number in range(3)]
        assert statuses == [200, 200, 429]


class TestConversations:
    async def test_of_another_caller_are_not_gone_on_with(
        self, client: Client, settings: Settings
    ) -> None:
        headers = {"x-openwebui-chat-id": "the-same"}
        alice = Chats(client, "demo", {**await bearer(), **headers})
        bob = Chats(client, "demo", {**await bearer(), **headers})
        await alice.say("echo hi")
        bob.history = alice.history[:]
        await alice.say("echo a")
        await bob.say("echo b")
        contexts = await run_in_thread(
            lambda: dict(Task.objects.order_by("pk").values_list("pk", "context"))
        )
        first, second, third = contexts.values()
        assert first == second != third

    async def test_are_removed_with_their_tasks(self, client: Client) -> None:
        await Chats(client, "demo", await bearer()).say("echo hi")
        assert await run_in_thread(ChatPrefix.objects.count) == 1
        await run_in_thread(lambda: Task.objects.all().delete())
        assert await run_in_thread(ChatPrefix.objects.count) == 0


class TestMetrics:
    async def test_count_requests_of_the_door(self, client: Client) -> None:
        def count(code: str) -> float:
            labels = {"binding": "openai", "code": code, "dialect": "v10", "method": "SendMessage"}
            return REGISTRY.get_sample_value("a2a_requests_total", labels) or 0.0

        before = count("ok")
        await Chats(client, "demo", await bearer()).say("echo hi")
        assert count("ok") == before + 1
