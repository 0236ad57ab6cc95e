"""Who comes too often is told to come later: each on its own account, on every wire, in its own words."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from a2a_tasks import pubsub
from a2a_tasks.access import authentication, token_buckets
from a2a_tasks.access.api_keys import issue
from a2a_tasks.access.credentials import Credentials
from a2a_tasks.agents import registry
from a2a_tasks.models import ApiKey
from a2a_tasks.protocol.errors import InsufficientScope, RateLimited, Unauthenticated
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.test_on_the_wire import bearing
from tests.support.bindings.client import Client, Response
from tests.support.dialects.clients import WIRES, Refused, Wire


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has come yet, also as far as Redis knows."""
    host = uuid.uuid4().hex
    monkeypatch.setattr(pubsub, "prefix", lambda: host)
    monkeypatch.setattr(token_buckets, "PATIENCE_SECONDS", 30.0)


pytestmark = pytest.mark.usefixtures("host")
ONE = "1/h"


async def key(**about: Any) -> dict[str, str]:
    return {"x-api-key": (await run_in_thread(lambda: issue("test", **about))).key}


async def come(headers: dict[str, str], address: str = "192.0.2.1", agent: str = "demo") -> str:
    """Come to the door once; what becomes of it."""
    try:
        await authentication.identify(Credentials(headers, address=address), registry.find(agent))
    except (RateLimited, Unauthenticated, InsufficientScope) as fault:
        return type(fault).__name__
    return "in"


class TestTheDoor:
    async def test_without_rates_nobody_is_counted(self) -> None:
        headers = await key()
        assert {await come(headers) for _ in range(200)} == {"in"}

    async def test_each_caller_has_a_bucket_of_its_own(self, settings: Any) -> None:
        settings.A2A_RATE_PER_CALLER = "1/h burst 2"
        alice, bob = await key(), await key()
        assert [await come(alice) for _ in range(3)] == ["in", "in", "RateLimited"]
        assert [await come(bob) for _ in range(3)] == ["in", "in", "RateLimited"]

    async def test_a_key_may_have_a_rate_of_its_own(self, settings: Any) -> None:
        settings.A2A_RATE_PER_CALLER = ONE
        often = await key(rate="3/h")
        assert [await come(often) for _ in range(4)] == ["in", "in", "in", "RateLimited"]

    async def test_a_rate_nobody_can_read_opens_nothing(self) -> None:
        headers = await key()
        await run_in_thread(lambda: ApiKey.objects.update(rate="often"))
        assert await come(headers) == "WrongCredentials"

    async def test_the_callers_of_a_tenant_share_its_bucket(self, settings: Any) -> None:
        settings.A2A_RATE_PER_TENANT = "2/h"
        alice, bob, other = await key(tenant="a"), await key(tenant="a"), await key(tenant="b")
        assert [await come(who) for who in (alice, bob, alice)] == ["in", "in", "RateLimited"]
        assert await come(other) == "in"

    async def test_an_agent_is_asked_no_oftener_by_all_together(self, settings: Any) -> None:
        settings.A2A_RATE_PER_AGENT = "2/h"
        assert [await come(await key()) for _ in range(3)] == ["in", "in", "RateLimited"]

    async def test_an_agent_may_have_a_rate_of_its_own(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_RATE_PER_AGENT = "2/h"
        monkeypatch.setattr(type(registry.find("demo")), "rate", "4/h")
        assert [await come(await key()) for _ in range(5)] == ["in"] * 4 + ["RateLimited"]

    async def test_nobody_is_metered_by_address(self, settings: Any) -> None:
        settings.A2A_ANONYMOUS = "1"
        settings.A2A_RATE_PER_CALLER = ONE
        addresses = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"]
        addresses += ["::ffff:192.0.2.2", "", "no address"]
        assert [await come({}, address) for address in addresses] == [
            *("in", "RateLimited", "in", "in", "RateLimited"),
            *("RateLimited", "in", "in"),
        ]

    async def test_who_is_refused_uses_up_nobodys_tokens(self, settings: Any) -> None:
        settings.A2A_RATE_PER_CALLER = ONE
        settings.A2A_RATE_PER_AGENT = "2/h"
        alice = await key()
        assert [await come(alice) for _ in range(5)] == ["in"] + ["RateLimited"] * 4
        assert await come(await key()) == "in"


class TestGuessing:
    wrong = {"x-api-key": "a2a_aaaaaaaaaaaa_" + "A" * 43}

    async def test_an_address_that_was_wrong_too_often_is_not_looked_at(
        self, settings: Any
    ) -> None:
        settings.A2A_RATE_WRONG_CREDENTIALS = "3/h"
        met = [await come(self.wrong) for _ in range(5)]
        assert met == ["WrongCredentials"] * 3 + ["RateLimited"] * 2
        assert await come(await key()) == "RateLimited", "a guess that is right is one, too"
        assert await come(self.wrong, address="192.0.2.9") == "WrongCredentials"

    async def test_who_is_known_already_comes_in(self, settings: Any) -> None:
        settings.A2A_RATE_WRONG_CREDENTIALS = "3/h"
        known = await key()
        assert await come(known) == "in"
        for _ in range(5):
            await come(self.wrong)
        assert await come(known) == "in"

    async def test_good_ones_of_a_scheme_the_agent_does_not_take_are_no_guesses(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_RATE_WRONG_CREDENTIALS = ONE
        monkeypatch.setattr(type(registry.find("demo")), "schemes", ("bearer",))
        for _ in range(3):
            assert await come(await key()) == "WrongCredentials"

    async def test_good_ones_without_the_scope_are_no_guesses(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_RATE_WRONG_CREDENTIALS = ONE
        monkeypatch.setattr(type(registry.find("demo")), "scopes", ("pay",))
        for _ in range(3):
            assert await come(await key()) == "InsufficientScope"
        assert await come(await key(scopes=["pay"])) == "in"


def retry_after(response: Response) -> int:
    text = response.header("retry-after")
    assert text is not None
    return int(text)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_every_wire_says_429_and_when_to_come_again(wire: Wire, settings: Any) -> None:
    settings.A2A_RATE_PER_CALLER = "1/m"
    headers = await key()
    made = wire.of(Client(bearing(headers)), "demo")
    await made.send("echo hi")
    for ask in (made.send("echo hi"), made.get("t")):
        with pytest.raises(Refused) as found:
            await ask
        response = found.value.response
        assert response.status == 429
        assert 0 < retry_after(response) <= 60
        assert "Too many requests" in response.body.decode()


async def test_1_0_has_the_status_and_retry_info_of_google_rpc(settings: Any) -> None:
    settings.A2A_RATE_PER_CALLER = "1/m"
    asked = Client(bearing(await key()))
    assert (await asked.get("/agents/demo/tasks")).status == 200
    response = await asked.get("/agents/demo/tasks")
    error = json.loads(response.body)["error"]
    assert (error["code"], error["status"]) == (429, "RESOURCE_EXHAUSTED")
    (detail,) = error["details"]
    assert detail["@type"] == "type.googleapis.com/google.rpc.RetryInfo"
    assert detail["retryDelay"] == f"{retry_after(response)}s"


async def test_a_request_that_is_refused_is_not_read(settings: Any) -> None:
    settings.A2A_RATE_PER_CALLER = ONE
    asked = Client(bearing(await key()))
    assert (await asked.get("/agents/demo/tasks")).status == 200
    async with asked.exchange("POST", "/agents/demo/", {"content-type": "application/json"}) as one:
        one.upload(b"{", more=True)
        assert (await one.response()).status == 429
        assert one.taken == 0
