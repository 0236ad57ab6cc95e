"""HTTP Basic with Django's users, and certificates that a listed proxy has verified."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from a2a_tasks.access import passwords
from a2a_tasks.access.authentication import Credentials, identify
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import Overloaded, Unauthenticated, WrongCredentials
from a2a_tasks.store.db import run_in_thread
from tests.support.access.certificates import as_in_rfc_9440, as_nginx_does, certificate
from tests.support.rows import rows

PASSWORD = "correct horse: battery ü"


def basic(name: str, password: str = PASSWORD) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.django_db
class TestUsers:
    @pytest.fixture(autouse=True)
    def on(self, settings: Any) -> None:
        """Names and passwords are taken."""
        settings.A2A_BASIC = True

    @pytest.fixture
    def alice(self) -> User:
        """A user of two groups, one of which is no scope."""
        user: User = User.objects.create_user("alice", password=PASSWORD)
        user.groups.add(*(Group.objects.create(name=name) for name in ("pay", "many words")))
        return user

    async def test_are_known_by_name_and_password_and_their_groups_are_scopes(
        self, alice: User
    ) -> None:
        caller = await identify(Credentials(basic("alice")))
        assert caller == Caller(principal=f"user:{alice.pk}", scopes=frozenset({"pay"}))

    async def test_are_refused_with_anything_else(self, alice: User) -> None:
        for headers in (
            basic("alice", "wrong"),
            basic("alice", ""),
            basic("bob"),
            basic(""),
            basic("alice\0"),
            basic("alice", PASSWORD + "\0"),
            basic("a" * 5000),
            {"authorization": "Basic"},
            {"authorization": "Basic !!!"},
            {"authorization": "Basic " + base64.b64encode(b"alice").decode()},
            {"authorization": "Basic " + base64.b64encode(b"\xff\xfe:x").decode()},
            {
                "authorization": f"{basic('alice')['authorization']},{basic('alice')['authorization']}"
            },
        ):
            with pytest.raises(WrongCredentials):
                await identify(Credentials(headers))

    async def test_who_are_no_longer_active_are_refused(self, alice: User) -> None:
        alice.is_active = False
        await run_in_thread(alice.save)
        with pytest.raises(WrongCredentials):
            await identify(Credentials(basic("alice")))

    async def test_are_refused_where_basic_is_off(self, alice: User, settings: Any) -> None:
        settings.A2A_BASIC = False
        with pytest.raises(WrongCredentials):
            await identify(Credentials(basic("alice")))

    async def test_have_their_password_tried_once_for_many_requests(
        self, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await identify(Credentials(basic("alice")))
        await run_in_thread(User.objects.all().delete)
        await identify(Credentials(basic("alice")))

    @pytest.mark.django_db(transaction=True)
    async def test_cannot_be_guessed_at_without_bound(
        self, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(passwords, "MAX_WAITING", 4)
        tries = (identify(Credentials(basic("alice", f"{n}"))) for n in range(10))
        answers = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(answer, Overloaded) for answer in answers) == 6
        assert passwords._waiting == 0

    async def test_passwords_are_in_no_log(
        self, alice: User, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        await identify(Credentials(basic("alice")))
        with pytest.raises(WrongCredentials):
            await identify(Credentials(basic("alice", "canary-7f3a")))
        for secret in (PASSWORD, "canary-7f3a", basic("alice")["authorization"][6:]):
            assert secret not in caplog.text


#: A good certificate, with a character that base64 does not have.
ODD = as_in_rfc_9440(certificate("alice")).replace("A", "A!", 1)


class TestCertificates:
    @pytest.fixture(autouse=True)
    def on(self, settings: Any) -> None:
        """Two proxies are listed."""
        settings.A2A_MTLS_PEERS = "10.1.0.0/16, 127.0.0.1"
        settings.A2A_MTLS_SCOPES = "internal"

    async def shown(self, text: str, peer: str = "10.1.2.3", **more: Any) -> Caller:
        return await identify(Credentials({"client-cert": text}, peer, **more))

    @rows("written", [as_in_rfc_9440, as_nginx_does])
    async def test_name_the_caller(self, written: Any) -> None:
        caller = await self.shown(written(certificate("Alice & Söhne, Inc.")))
        assert caller.principal == "cert:CN=Alice & Söhne\\, Inc."
        assert caller.scopes == {"internal"}

    async def test_of_workloads_name_them_by_their_spiffe_id(self) -> None:
        uri = "spiffe://corp.example/ns/prod/sa/billing"
        assert (await self.shown(as_in_rfc_9440(certificate("", uri)))).principal == f"cert:{uri}"

    async def test_that_name_nobody_are_refused(self) -> None:
        with pytest.raises(WrongCredentials):
            await self.shown(as_in_rfc_9440(certificate("", "https://x.example")))

    async def test_with_two_ids_of_workloads_are_known_by_their_subject(self) -> None:
        two = certificate("alice", "spiffe://corp.example/a", "spiffe://corp.example/b")
        assert (await self.shown(as_in_rfc_9440(two))).principal == "cert:CN=alice"

    async def test_with_a_long_name_are_known_by_its_digest(self) -> None:
        uri = f"spiffe://corp.example/{'x' * 2000}"
        principal = (await self.shown(as_in_rfc_9440(certificate("", uri)))).principal
        assert principal == f"cert:sha256:{hashlib.sha256(uri.encode()).hexdigest()}"

    @rows("uri", ["spiffe://corp.example/a\nb", "spiffe://corp.example/\x7f"])
    async def test_whose_name_cannot_be_shown_are_refused(self, uri: str) -> None:
        with pytest.raises(WrongCredentials):
            await self.shown(as_in_rfc_9440(certificate("", uri)))

    @rows("peer", ["10.2.0.1", "8.8.8.8", "", "unix:", "::1", "10.1.0.0/16"])
    async def test_from_peers_that_are_not_listed_are_not_looked_at(self, peer: str) -> None:
        with pytest.raises(Unauthenticated) as found:
            await self.shown(as_in_rfc_9440(certificate("alice")), peer)
        assert not isinstance(found.value, WrongCredentials)

    async def test_from_a_listed_peer_by_its_mapped_address_are_believed(self) -> None:
        await self.shown(as_in_rfc_9440(certificate("alice")), "::ffff:10.1.2.3")

    async def test_are_not_looked_at_where_nobody_is_listed(self, settings: Any) -> None:
        settings.A2A_MTLS_PEERS = ""
        with pytest.raises(Unauthenticated):
            await self.shown(as_in_rfc_9440(certificate("alice")))

    async def test_that_came_twice_are_refused(self) -> None:
        """The proxy did not replace what its client had written."""
        with pytest.raises(WrongCredentials):
            await self.shown(as_in_rfc_9440(certificate("alice")), repeated=["client-cert"])

    @rows("text", ["x", "::", ":AAAA:", ":!:", "-----BEGIN CERTIFICATE-----", ODD])
    async def test_that_cannot_be_read_are_refused(self, text: str) -> None:
        with pytest.raises(WrongCredentials):
            await self.shown(text)

    async def test_count_less_than_a_credential_that_was_shown(self) -> None:
        headers = {"client-cert": as_in_rfc_9440(certificate("alice")), "x-api-key": "wrong"}
        with pytest.raises(WrongCredentials):
            await identify(Credentials(headers, "10.1.2.3"))
