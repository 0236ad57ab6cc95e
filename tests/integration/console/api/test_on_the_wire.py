"""Through the host's own application, as servers call it: every way in, and an agent that is stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group, User

from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.test_on_the_wire import challenges
from tests.integration.access.test_users_and_certificates import PASSWORD, basic
from tests.support.access.certificates import as_in_rfc_9440, certificate
from tests.support.access.fixtures import client, closed, host, issuer, local
from tests.support.access.issuer import Issuer
from tests.support.bindings.client import Client, Response
from tests.support.console.admin.rows import make_task
from tests.support.console.api.world import person
from tests.support.execution.waiting import until

__all__ = ["client", "closed", "host", "issuer", "local"]

pytestmark = pytest.mark.usefixtures("host")

TASKS = "/api/v1/tasks"


async def listed(client: Client, headers: Mapping[str, str]) -> int:
    answer: Response = await client.ask("GET", TASKS, headers=headers)
    return answer.status


@pytest.mark.django_db
class TestTheWaysIn:
    async def test_is_a_token_made_out_to_the_host(
        self, client: Client, issuer: Issuer, settings: Any
    ) -> None:
        good = issuer.token(aud=settings.A2A_PUBLIC_URL, scope="admin:read")
        assert await listed(client, {"authorization": f"Bearer {good}"}) == 200
        of_an_agent = issuer.token(scope="admin:read")
        assert await listed(client, {"authorization": f"Bearer {of_an_agent}"}) == 401
        too_little = issuer.token(aud=settings.A2A_PUBLIC_URL)
        answer = await client.ask("GET", TASKS, headers={"authorization": f"Bearer {too_little}"})
        assert answer.status == 403
        assert challenges(answer) == [
            'Bearer realm="a2a", error="insufficient_scope", scope="admin:read"'
        ]

    async def test_is_a_name_and_a_password_of_a_group(self, client: Client, settings: Any) -> None:
        settings.A2A_BASIC = True
        alice = await run_in_thread(User.objects.create_user, "alice", password=PASSWORD)
        assert await listed(client, basic("alice")) == 403
        group = await run_in_thread(Group.objects.create, name="admin:read")
        await run_in_thread(alice.groups.add, group)
        settings.A2A_BASIC = True  # who she is is looked at anew
        assert await listed(client, basic("alice")) == 200

    @pytest.mark.django_db(transaction=True)
    async def test_by_a_password_shows_the_tenants_that_a_session_of_the_user_would(
        self, client: Client, settings: Any
    ) -> None:
        settings.A2A_BASIC = True
        await run_in_thread(issue, "of globex", tenant="globex")
        await run_in_thread(issue, "of acme", tenant="acme")
        alice = await run_in_thread(User.objects.create_user, "alice", password=PASSWORD)
        for name in ("admin:read", "tenant:acme"):
            await run_in_thread(
                alice.groups.add, await run_in_thread(Group.objects.create, name=name)
            )
        answer = await client.ask("GET", "/api/v1/keys", headers=basic("alice"))
        assert [row["name"] for row in json.loads(answer.body)["items"]] == ["of acme"]

    async def test_is_a_certificate_from_a_listed_proxy_alone(
        self, client: Client, settings: Any
    ) -> None:
        shown = {"client-cert": as_in_rfc_9440(certificate("alice"))}
        settings.A2A_MTLS_SCOPES = "admin:read"
        assert await listed(client, shown) == 401
        settings.A2A_MTLS_PEERS = "127.0.0.1"
        assert await listed(client, shown) == 200
        settings.A2A_MTLS_PEERS = "10.0.0.1"
        assert await listed(client, shown) == 401

    @pytest.mark.django_db(transaction=True)
    async def test_is_a_session_before_the_certificate_of_the_connection(
        self, client: Client, settings: Any
    ) -> None:
        settings.A2A_MTLS_PEERS = "127.0.0.1"
        bob = await run_in_thread(person, "a2a_tasks.view_task")
        cookie = f"{django_settings.SESSION_COOKIE_NAME}={bob.cookies['sessionid'].value}"
        shown = {"client-cert": as_in_rfc_9440(certificate("alice"))}
        assert await listed(client, shown) == 403  # a certificate without scopes
        assert await listed(client, {**shown, "cookie": cookie}) == 200
        assert await listed(client, {"x-api-key": "x", "cookie": cookie}) == 401

    @pytest.mark.django_db(transaction=True)
    async def test_is_closed_to_what_other_sites_have_a_browser_send(self, client: Client) -> None:
        key = (await run_in_thread(issue, "test", scopes=["admin:write"])).key
        task = await run_in_thread(make_task)
        url, headers = f"{TASKS}/{task.pk}/cancel", {"x-api-key": key}
        for site in ("cross-site", "same-site", "nonsense"):
            headers["sec-fetch-site"] = site
            refused = await client.ask("POST", url, headers=headers)
            assert (refused.status, refused.json["code"]) == (403, "csrf")
        headers["sec-fetch-site"] = "same-origin"
        assert (await client.ask("POST", url, headers=headers)).status == 200

    async def test_is_not_open_where_the_agents_are(self, client: Client, settings: Any) -> None:
        settings.A2A_ANONYMOUS = "1"
        answer = await client.ask("GET", TASKS)
        assert answer.status == 401
        assert answer.header("content-type") == "application/problem+json"


@pytest.mark.django_db(transaction=True)
class TestCancelling:
    async def test_stops_the_agent_at_work(self, client: Client) -> None:
        key = (await run_in_thread(issue, "test", scopes=["admin:write", "admin:read"])).key
        headers = {"x-api-key": key, "content-type": "application/json"}
        parts = [{"text": "sleep 60"}]
        message = {"messageId": "1", "role": "ROLE_USER", "parts": parts}
        send = {"message": message, "configuration": {"returnImmediately": True}}
        begun = await client.ask(
            "POST", "/agents/demo/message:send", json.dumps(send).encode(), headers
        )
        assert begun.status == 200

        async def working() -> bool:
            return bool(await run_in_thread(Task.objects.filter(state="TASK_STATE_WORKING").count))

        await until(working)
        (line,) = (await client.ask("GET", f"{TASKS}?state=working", headers=headers)).json["items"]
        ended = await client.ask("POST", f"{TASKS}/{line['key']}/cancel", headers=headers)
        assert (ended.status, ended.json["state"]) == (200, "canceled")
        read = await client.ask("GET", f"/agents/demo/tasks/{line['id']}", headers=headers)
        assert read.json["status"]["state"] == "TASK_STATE_CANCELED"
