"""API keys: made once, kept as digests, rotated with overlap, and ended within seconds."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from a2a_tasks.access import authentication
from a2a_tasks.access.api_keys import IssuedKey, issue, list_keys, revoke, rotate
from a2a_tasks.access.authentication import Credentials, identify
from a2a_tasks.caller import Caller
from a2a_tasks.models import ApiKey
from a2a_tasks.protocol.errors import Overloaded, WrongCredentials
from a2a_tasks.store.db import run_in_thread
from tests.support.rows import rows

pytestmark = pytest.mark.django_db


async def shown(key: str) -> Caller:
    """Who shows the key, at a place of the host's own."""
    return await identify(Credentials({"x-api-key": key}))


async def refused(key: str) -> str:
    """Check that the key opens nothing; what the client is told."""
    with pytest.raises(WrongCredentials) as found:
        await shown(key)
    return str(found.value)


async def made(name: str = "test", **about: Any) -> IssuedKey:
    return await run_in_thread(issue, name, **about)


async def changed(issued: IssuedKey, **columns: Any) -> None:
    """Have the row say this, and look at everything anew."""
    await run_in_thread(ApiKey.objects.filter(pk=issued.row.pk).update, **columns)
    authentication.forget()


async def row_of(issued: IssuedKey) -> ApiKey:
    return await run_in_thread(ApiKey.objects.get, pk=issued.row.pk)


class TestAKey:
    async def test_says_who_calls_and_what_it_may(self) -> None:
        issued = await made(tenant="acme", scopes=["b", "a", "a"])
        caller = await shown(issued.key)
        assert caller == Caller(
            principal=f"key:{issued.row.prefix}", tenant="acme", scopes=frozenset("ab")
        )

    async def test_is_kept_as_a_digest_of_256_random_bits(self) -> None:
        issued = await made()
        _, prefix, secret = issued.key.split("_", 2)
        assert len(secret) == 43
        assert (await row_of(issued)).digest == hashlib.sha256(secret.encode()).hexdigest()
        assert prefix == issued.row.prefix
        columns = [str(value) for value in vars(await row_of(issued)).values()]
        assert not any(secret in column for column in columns)
        assert secret not in repr(issued)

    async def test_may_come_in_another_header(self, settings: Any) -> None:
        settings.A2A_API_KEY_HEADER = "X-Our-Key"
        issued = await made()
        with pytest.raises(Exception, match="required"):
            await shown(issued.key)
        await identify(Credentials({"x-our-key": issued.key}))

    async def test_is_not_looked_at_where_keys_are_off(self, settings: Any) -> None:
        settings.A2A_API_KEYS = False
        with pytest.raises(Exception, match="required"):
            await shown((await made()).key)

    @rows(("scopes", "tenant"), [(["a b"], ""), (['"'], ""), (["ü"], ""), ([], "a/b"), ([], "\n")])
    async def test_is_not_made_of_what_is_no_scope_or_tenant(
        self, scopes: list[str], tenant: str
    ) -> None:
        with pytest.raises(ValueError, match="cannot be"):
            await made(scopes=scopes, tenant=tenant)


class TestAKeyIsRefused:
    async def test_when_any_of_it_is_wrong(self) -> None:
        issued, other = await made(), await made()
        secret = issued.key[17:]
        for key in (
            f"a2a_{other.row.prefix}_{issued.key[17:]}",
            f"a2a_{'a' * 12}_{issued.key[17:]}",
            issued.key[:-1],
            issued.key + "x",
            issued.key.upper(),
            issued.key.replace("a2a_", "a2b_"),
            f"a2a_{issued.row.prefix}_",
            f"a2a_{issued.row.prefix}_{'A' * 43}",
            f"{issued.key},{issued.key}",
            secret,
            "",
            "\0",
            "' or 1=1 --",
            "x" * 100_000,
        ):
            assert await refused(key) == "The credentials are not valid"

    async def test_when_it_has_expired_and_is_told_so(self) -> None:
        issued = await made(expires_at=timezone.now() + timedelta(hours=1))
        await shown(issued.key)
        await changed(issued, expires_at=timezone.now() - timedelta(seconds=1))
        assert "expired" in await refused(issued.key)

    async def test_when_it_was_revoked(self) -> None:
        issued = await made()
        await shown(issued.key)
        assert await run_in_thread(revoke, issued.row.prefix)
        assert not await run_in_thread(revoke, issued.row.prefix)
        authentication.forget()
        await refused(issued.key)

    async def test_and_the_secret_is_in_no_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        issued = await made()
        await shown(issued.key)
        await run_in_thread(revoke, issued.row.prefix)
        authentication.forget()
        await refused(issued.key)
        await refused(issued.key[:-1])
        assert issued.key[17:-1] not in caplog.text


class TestRotation:
    async def test_lets_both_secrets_open_for_a_while(self) -> None:
        old = await made()
        new = await run_in_thread(rotate, old.row.prefix, timedelta(hours=1))
        assert new.key != old.key
        assert await shown(old.key) == await shown(new.key)
        await changed(old, previous_until=timezone.now() - timedelta(seconds=1))
        await refused(old.key)
        await shown(new.key)

    async def test_ends_the_secret_before_the_last_at_once(self) -> None:
        keys = [await made()]
        for _ in range(2):
            keys.append(await run_in_thread(rotate, keys[0].row.prefix, timedelta(hours=1)))
        await refused(keys[0].key)
        await shown(keys[1].key)
        await shown(keys[2].key)

    async def test_without_overlap_ends_the_old_one_at_once(self) -> None:
        old = await made()
        await run_in_thread(rotate, old.row.prefix, timedelta(0))
        await refused(old.key)

    async def test_of_what_has_ended_is_refused(self) -> None:
        gone, expired = await made(), await made(expires_at=timezone.now() - timedelta(seconds=1))
        await run_in_thread(revoke, gone.row.prefix)
        for prefix in (gone.row.prefix, expired.row.prefix, "nobody"):
            with pytest.raises(ValueError, match=r"revoked|expired"):
                await run_in_thread(rotate, prefix, timedelta(0))

    async def test_tells_whether_the_old_secret_is_still_used(self) -> None:
        old = await made()
        await run_in_thread(rotate, old.row.prefix, timedelta(hours=1))
        assert (await row_of(old)).previous_used_at is None
        await shown(old.key)
        assert (await row_of(old)).previous_used_at is not None
        assert (await row_of(old)).last_used_at is None


class TestWhatIsKnown:
    @pytest.fixture
    async def at(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> AsyncIterator[list[float]]:
        """A clock that the test turns, and for how long what is seen is believed by it."""
        settings.A2A_CREDENTIAL_SECONDS = 5.0
        now = [1000.0]
        for memory in (authentication._valid, authentication._wrong):
            monkeypatch.setattr(memory, "_clock", lambda: now[0])
        yield now

    async def test_costs_no_look_at_the_database(self, at: list[float]) -> None:
        issued = await made()
        await shown(issued.key)
        await run_in_thread(ApiKey.objects.all().delete)
        await shown(issued.key)

    async def test_is_forgotten_in_time_so_that_revoking_takes_effect(
        self, at: list[float]
    ) -> None:
        """Within A2A_CREDENTIAL_SECONDS."""
        issued = await made()
        await shown(issued.key)
        await run_in_thread(revoke, issued.row.prefix)
        at[0] += 4.9
        await shown(issued.key)
        at[0] += 0.1
        await refused(issued.key)

    async def test_is_forgotten_when_the_key_ends(self, at: list[float], settings: Any) -> None:
        settings.A2A_CREDENTIAL_SECONDS = 10 * 3600.0
        issued = await made(expires_at=timezone.now() + timedelta(hours=2))
        old = issued.key
        new = (await run_in_thread(rotate, issued.row.prefix, overlap=timedelta(hours=1))).key
        for key in (old, new):
            await shown(key)
        await run_in_thread(ApiKey.objects.all().delete)
        at[0] += 3500
        for key in (old, new):
            await shown(key)
        at[0] += 100
        await refused(old)
        await shown(new)
        at[0] += 3600
        await refused(new)

    async def test_of_a_former_secret_ends_with_its_key(self) -> None:
        issued = await made(expires_at=timezone.now() + timedelta(hours=1))
        await run_in_thread(rotate, issued.row.prefix, overlap=timedelta(hours=2))
        await shown(issued.key)
        await changed(issued, expires_at=timezone.now() - timedelta(seconds=1))
        assert "expired" in await refused(issued.key)

    async def test_is_nothing_if_the_operator_wants_it_so(self, settings: Any) -> None:
        settings.A2A_CREDENTIAL_SECONDS = 0.0
        issued = await made()
        await shown(issued.key)
        await run_in_thread(revoke, issued.row.prefix)
        await refused(issued.key)

    async def test_of_wrong_keys_is_forgotten_too(self, at: list[float]) -> None:
        issued = await made()
        await run_in_thread(revoke, issued.row.prefix)
        await refused(issued.key)
        await run_in_thread(ApiKey.objects.filter(pk=issued.row.pk).update, revoked_at=None)
        await refused(issued.key)
        at[0] += 5
        await shown(issued.key)

    async def test_is_bounded_and_wrong_keys_push_out_no_good_ones(self, at: list[float]) -> None:
        issued = await made()
        await shown(issued.key)
        for n in range(authentication.MAX_WRONG + 10):
            await refused(f"wrong {n}")
        assert len(authentication._wrong) == authentication.MAX_WRONG
        await run_in_thread(ApiKey.objects.all().delete)
        await shown(issued.key)

    async def test_holds_no_key_in_memory(self) -> None:
        issued = await made()
        await shown(issued.key)
        known = repr(authentication._valid._kept)
        assert issued.key not in known
        assert hashlib.sha256(issued.key.encode()).hexdigest() not in known

    async def test_use_is_written_once_a_minute(self) -> None:
        issued = await made()
        await shown(issued.key)
        first = (await row_of(issued)).last_used_at
        assert first is not None
        authentication.forget()
        await shown(issued.key)
        assert (await row_of(issued)).last_used_at == first
        long_ago = timezone.now() - timedelta(seconds=61)
        await changed(issued, last_used_at=long_ago)
        await shown(issued.key)
        assert (await row_of(issued)).last_used_at != long_ago

    async def test_made_up_keys_cannot_fill_the_line_to_the_database(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(authentication, "MAX_ASKED", 3)
        keys = [f"a2a_{'a' * 12}_{n:043d}" for n in range(10)]
        answers = await asyncio.gather(*map(shown, keys), return_exceptions=True)
        assert sum(isinstance(answer, Overloaded) for answer in answers) == 7
        assert not authentication._asking


class TestTheCommand:
    def said(self, capsys: pytest.CaptureFixture[str], *words: str) -> str:
        call_command("api_keys", *words)
        return capsys.readouterr().out

    def test_makes_lists_rotates_and_revokes(self, capsys: pytest.CaptureFixture[str]) -> None:
        key = self.said(capsys, "create", "billing robot", "--scopes", "a b", "--tenant", "acme")
        found = re.fullmatch(r"(a2a_([a-z2-7]{12})_\S{43})\n", key)
        assert found is not None
        prefix = found[2]
        shown_again = self.said(capsys, "list")
        assert prefix in shown_again
        assert "billing robot" in shown_again
        assert "acme" in shown_again
        assert found[1][17:] not in shown_again
        assert self.said(capsys, "rotate", prefix, "--overlap-hours", "2") != key
        assert "old secret until" in self.said(capsys, "list")
        self.said(capsys, "revoke", prefix)
        assert "revoked" in self.said(capsys, "list")
        for words in (("revoke", prefix), ("rotate", prefix), ("rotate", "nobody")):
            with pytest.raises(CommandError):
                call_command("api_keys", *words)

    def test_lets_keys_end_after_a_year_unless_told_otherwise(self) -> None:
        call_command("api_keys", "create", "one")
        call_command("api_keys", "create", "two", "--days", "0")
        one, two = list_keys()
        assert one.expires_at is not None
        assert 364 <= (one.expires_at - timezone.now()).days <= 365
        assert two.expires_at is None

    @rows("words", [("--scopes", 'a"b'), ("--tenant", "a/b"), ("--days", "-1"), ("--days", "nan")])
    def test_refuses_what_cannot_be(self, words: tuple[str, ...]) -> None:
        with pytest.raises(CommandError):
            call_command("api_keys", "create", "x", *words)
        assert not list_keys()


async def test_a_database_that_takes_no_writes_still_lets_callers_in(backend: str) -> None:
    if backend == "sqlite":
        statement = "create trigger no_use before update on a2a_tasks_apikey begin select raise(abort, 'no'); end"
        end = "drop trigger no_use"
    else:
        statement = (
            "create function no_use() returns trigger language plpgsql as $$ begin raise 'no'; end $$;"
            "create trigger no_use before update on a2a_tasks_apikey for each row execute function no_use()"
        )
        end = "drop function no_use cascade"
    issued = await made()

    def execute(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    await run_in_thread(execute, statement)
    try:
        await shown(issued.key)
    finally:
        await run_in_thread(execute, end)
