"""Keys of cards as the settings say them: from files or the environment, checked, and only where URLs are the operator's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.agents import Extension, registry
from a2a_tasks.checks import check_card_keys, check_card_keys_of_production, check_settings
from a2a_tasks.signatures import ring
from a2a_tasks.signatures.key_file import write_jwks
from a2a_tasks.signatures.keys import CardKey
from tests.support.signatures.given import EDWARDS, NIST, OTHER
from tests.unit.signatures.test_keys import NIST_PEM, pem, public_pem


@pytest.fixture(autouse=True)
def public_url(settings: Settings) -> None:
    """The operator has said where the host is."""
    settings.A2A_PUBLIC_URL = "https://agents.example.com"


def kids(keys: tuple[CardKey, ...]) -> list[str]:
    """Their names."""
    return [key.kid for key in keys]


def file(directory: Path, text: str) -> str:
    """The path of a new file."""
    path = directory / f"{len(list(directory.iterdir()))}.keys"
    path.write_text(text)
    return str(path)


class TestTheSettings:
    def test_may_say_nothing(self, settings: Settings) -> None:
        settings.SECRET_KEY = "one"
        one = kids(ring.signers())
        settings.SECRET_KEY = b"one"
        assert kids(ring.signers()) == one
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "two", ["one"]
        assert kids(ring.signers())[1:] == one
        assert kids(ring.list_published()) == kids(ring.signers())

    def test_may_name_files_newest_first(self, settings: Settings, tmp_path: Path) -> None:
        first, second = file(tmp_path, write_jwks([EDWARDS, NIST])), file(tmp_path, pem(NIST_PEM))
        settings.A2A_CARD_KEYS = f" {first} , {second},"
        assert kids(ring.ring())[:2] == [EDWARDS.kid, NIST.kid]
        assert len(ring.signers()) == 3

    @pytest.mark.parametrize("text", [write_jwks([NIST]), f" {write_jwks([NIST])}", pem(NIST_PEM)])
    def test_may_be_the_keys(self, settings: Settings, text: str) -> None:
        settings.A2A_CARD_KEYS = text
        assert len(ring.signers()) == 1

    def test_may_have_keys_that_only_verify(self, settings: Settings, tmp_path: Path) -> None:
        settings.A2A_CARD_KEYS = (
            f"{file(tmp_path, write_jwks([NIST]))},{file(tmp_path, public_pem(NIST_PEM))}"
        )
        assert kids(ring.signers()) == [NIST.kid]
        assert len(ring.list_published()) == 2

    def test_heed_the_times_of_keys(self, settings: Settings) -> None:
        old = CardKey(OTHER.kid, OTHER.algorithm, OTHER.jwk, {"exp": 1_000_000_000})
        new = CardKey(EDWARDS.kid, EDWARDS.algorithm, EDWARDS.jwk, {"nbf": 9_000_000_000})
        settings.A2A_CARD_KEYS = write_jwks([new, NIST, old])
        assert kids(ring.signers()) == [NIST.kid]
        assert kids(ring.list_published()) == [EDWARDS.kid, NIST.kid]

    def test_sign_nothing_that_a_client_may_have_said(self, settings: Settings) -> None:
        """Without the operator's URL a card has that of the request: nobody is to get that signed."""
        settings.A2A_CARD_KEYS, settings.A2A_PUBLIC_URL = write_jwks([NIST]), ""
        assert ring.signers() == ring.list_published() == ()

    def test_may_switch_it_off(self, settings: Settings) -> None:
        settings.A2A_SIGN_CARDS = False
        assert ring.signers() == ring.list_published() == ()

    def test_are_forgotten_with_the_test(self) -> None:
        assert kids(ring.ring()) != [NIST.kid]


class TestTheChecks:
    def test_pass_what_is_well(self, settings: Settings) -> None:
        assert list(check_card_keys()) == []
        settings.A2A_CARD_KEYS = write_jwks([NIST])
        assert list(check_card_keys()) == []
        assert list(check_card_keys_of_production()) == []

    @pytest.mark.parametrize(
        "wrong",
        [
            "hush",
            "/nowhere/hush",
            "/",
            "hush\0",
            "{hush",
            '{"keys": []}',
            '{"keys": [{"kty": "oct", "k": "hush"}]}',
            write_jwks([NIST]).replace("P-256", "P-521"),
            write_jwks([NIST, NIST]),
            "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----",
            public_pem(NIST_PEM),
            write_jwks([CardKey("k", "ES256", NIST.jwk, {"exp": 1_000_000_000})]),
        ],
    )
    def test_tell_what_is_wrong_and_show_no_key(self, wrong: str, settings: Settings) -> None:
        settings.A2A_CARD_KEYS = wrong
        (error,) = check_card_keys()
        assert error.id == "a2a_tasks.E017"
        assert "A2A_CARD_KEYS" in error.msg
        assert "hush" not in str(error)
        assert str(NIST.as_dict(private=True)["d"]) not in str(error)

    def test_tell_of_keys_that_sign_nothing(self, settings: Settings) -> None:
        settings.A2A_CARD_KEYS, settings.A2A_PUBLIC_URL = write_jwks([NIST]), ""
        (warning,) = check_card_keys()
        assert warning.id == "a2a_tasks.W013"

    def test_tell_of_a_card_that_cannot_be_signed(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        demo: Any = registry.find("demo")
        extension = Extension("urn:x", params={"n": 2**60})
        monkeypatch.setattr(type(demo), "extensions", [extension])
        (error,) = check_card_keys()
        assert error.id == "a2a_tasks.E018"
        assert "Demo" in str(error.obj)

    def test_leave_an_agent_that_is_not_well_to_its_own_check(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        demo: Any = registry.find("demo")
        monkeypatch.setattr(type(demo), "name", "")
        monkeypatch.setattr(type(demo), "extensions", ["no extension"])
        assert list(check_card_keys()) == []

    def test_of_production_want_keys_that_somebody_keeps(self, settings: Settings) -> None:
        (warning,) = check_card_keys_of_production()
        assert warning.id == "a2a_tasks.W014"
        settings.A2A_PUBLIC_URL = ""
        assert list(check_card_keys_of_production()) == []

    def test_tell_of_a_form_that_is_none(self, settings: Settings) -> None:
        settings.A2A_CARD_SIGNED_FORMS = "loose"
        assert [error.id for error in check_settings()] == ["a2a_tasks.E015"]
