"""Keys of webhooks: each receiver has its own, made from the host's secrets, and they can be exchanged."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from a2a_push import keys
from a2a_push.checks import check_webhook_secrets
from a2a_push.keyring import Audience, KeyRing, audience_of, origin
from a2a_push.operations.webhook import registrable
from a2a_push.signing import Secret, sign
from a2a_tasks.protocol.dialects import CLASSES
from a2a_tasks.protocol.values import PushConfig
from tests.support.push.verification import verify

OLD, NEW = Secret(b"o" * 32), Secret(b"n" * 64)
URL = "https://hooks.example.com"
HOOKS, ELSEWHERE = Audience("acme", URL), Audience("acme", "https://else.example.com")


class TestTheRing:
    def test_gives_the_same_keys_whenever_it_is_made(self) -> None:
        one, two = KeyRing.of([OLD.text]), KeyRing.of([OLD.text])
        assert one.signers(HOOKS) == two.signers(HOOKS)
        assert one.token_keys()[0].jwk.kid == two.token_keys()[0].jwk.kid

    def test_gives_every_receiver_its_own(self) -> None:
        ring = KeyRing.of([OLD.text, NEW.text])
        mine, theirs = set(ring.signers(HOOKS)), set(ring.signers(ELSEWHERE))
        assert len(mine) == len(theirs) == 4
        assert mine.isdisjoint(theirs)

    @pytest.mark.parametrize(
        "other",
        [
            Audience("beta", URL),
            Audience("", f"acme{URL}"),
            Audience("acme", URL, "crm"),
            Audience("acme", URL, "billing"),
        ],
    )
    def test_gives_others_at_the_same_origin_theirs(self, other: Audience) -> None:
        ring = KeyRing.of([OLD.text])
        for mine in (HOOKS, Audience("acme", URL, "CRM")):
            assert set(ring.signers(mine)).isdisjoint(ring.signers(other))

    def test_shows_no_receiver_the_hosts_secret(self) -> None:
        ring = KeyRing.of([OLD.text])
        assert OLD.raw not in [secret.raw for secret in ring.secrets(HOOKS)]
        assert ring.secrets(HOOKS)[0].raw != ring.pairs(HOOKS)[0].seed

    def test_signs_with_old_and_new_until_the_old_is_taken_away(self) -> None:
        before, during = KeyRing.of([OLD.text]), KeyRing.of([NEW.text, OLD.text])
        headers = dict(sign(during.signers(HOOKS), "msg_1", 1e9, b"{}"))
        for known in (before.secrets(HOOKS), KeyRing.of([NEW.text]).secrets(HOOKS)):
            assert verify(known, headers, b"{}", 1e9) == "msg_1"
        assert during.token_keys()[0].jwk.kid == KeyRing.of([NEW.text]).token_keys()[0].jwk.kid

    def test_is_not_shown(self) -> None:
        assert "oooo" not in repr(KeyRing.of([OLD.text]))


class TestTheOrigin:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("https://hooks.example.com/a?b#c", "https://hooks.example.com"),
            ("https://HOOKS.example.com:443", "https://hooks.example.com"),
            ("http://hooks.example.com:80/", "http://hooks.example.com"),
            ("http://hooks.example.com:443/", "http://hooks.example.com:443"),
            ("https://hooks.example.com:8443/x", "https://hooks.example.com:8443"),
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
            ("http://[::1]:9000/", "http://[::1]:9000"),
            ("https://[2001:db8::1]/", "https://[2001:db8::1]"),
        ],
    )
    def test_is_scheme_host_and_unusual_port(self, url: str, expected: str) -> None:
        assert origin(url) == expected


class TestTheAudience:
    """For whom keys are: a tenant, the origin of its receiver, and its webhook if the client has named that."""

    def test_is_a_tenant_an_origin_and_a_webhook_by_its_own_name(self) -> None:
        made = audience_of("acme", f"{URL}/a2a?b", "crm", "task-1")
        assert made == Audience("acme", URL, "crm")

    @pytest.mark.parametrize(
        "name", ["", "task-1", "default", "0b0d5f5e-7b62-4d5c-9c39-3f6f6f1f0c51"]
    )
    def test_is_without_a_name_that_the_host_has_given(self, name: str) -> None:
        assert audience_of("acme", URL, name, "task-1") == HOOKS

    def test_of_webhooks_of_all_dialects_that_nobody_has_named_is_the_same(self) -> None:
        for cls in CLASSES:
            made = registrable(PushConfig(url=URL), "task-1", cls.code)
            assert audience_of("acme", made.url, made.id, made.task_id) == HOOKS


class TestTheSettings:
    def test_may_say_nothing(self, settings: Settings) -> None:
        settings.SECRET_KEY = "one"
        one = keys.ring().secrets(HOOKS)
        settings.SECRET_KEY = b"one"
        assert keys.ring().secrets(HOOKS) == one
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "two", ["one"]
        assert keys.ring().secrets(HOOKS)[1:] == one

    def test_may_name_secrets_newest_first(self, settings: Settings) -> None:
        settings.A2A_WEBHOOK_SECRETS = f" {NEW.text} , {OLD.text},"
        assert keys.ring() == KeyRing.of([NEW.text, OLD.text])

    @pytest.mark.parametrize(
        "wrong", ["hush", "whsec_hush", f"{OLD.text},hush", "whpk_" + OLD.text[6:]]
    )
    def test_that_are_wrong_are_a_system_check_which_tells_nothing(
        self, wrong: str, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_SECRETS = wrong
        (error,) = check_webhook_secrets()
        assert error.id == "a2a_push.E004"
        assert "A2A_WEBHOOK_SECRETS" in error.msg
        assert "hush" not in str(error)
        assert OLD.text not in str(error)

    def test_that_are_well_pass_the_check(self, settings: Settings) -> None:
        assert list(check_webhook_secrets()) == []
        settings.A2A_WEBHOOK_SECRETS = f"{NEW.text},{OLD.text}"
        assert list(check_webhook_secrets()) == []

    def test_name_the_host_in_tokens(self, settings: Settings) -> None:
        assert keys.issuer() == "urn:a2a-host"
        settings.A2A_PUBLIC_URL = "https://agents.example.com/"
        assert keys.issuer() == "https://agents.example.com"


class TestTheCommand:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ([], Audience("", URL)),
            (["--tenant", "acme"], HOOKS),
            (["--tenant", "acme", "--config", "crm"], Audience("acme", URL, "crm")),
        ],
    )
    def test_tells_a_receiver_what_it_verifies_with(
        self, options: list[str], expected: Audience, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_SECRETS = f"{NEW.text},{OLD.text}"
        said = io.StringIO()
        call_command("webhook_keys", f"{URL}/a2a?for=alice", *options, stdout=said)
        first, *lines = said.getvalue().splitlines()
        assert first == " ".join(filter(None, [URL, *options]))
        assert lines == [key.text for key in keys.ring().verifiers(expected)]
        assert [line.partition("_")[0] for line in lines] == ["whsec", "whsec", "whpk", "whpk"]

    @pytest.mark.parametrize("url", ["hooks.example.com", "ftp://hooks.example.com", "https://"])
    def test_wants_a_url(self, url: str) -> None:
        with pytest.raises(CommandError, match="URL"):
            call_command("webhook_keys", url)
