"""Signatures verify wherever Standard Webhooks are verified, and nothing else does."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from a2a_push import signing
from a2a_push.signing import KeyPair, PublicKey, Secret, own_secrets, read_secret
from tests.support.push.verification import SignatureMismatch, verify

NOW = 1_700_000_000.5
ID, BODY = "msg_1", '{"task":"é"}'.encode()
SECRET, OTHER = Secret(b"s" * 32), Secret(b"o" * 24)
PAIR = KeyPair(b"p" * 32)
secrets = st.binary(min_size=24, max_size=64).map(Secret)
ids = st.text(
    st.characters(codec="ascii", categories=["L", "N"], include_characters="_-"), min_size=1
)


def signed(*keys: signing.Signer, now: float = NOW, body: bytes = BODY) -> dict[str, str]:
    """The headers of an attempt."""
    return dict(signing.sign(keys, ID, now, body))


class TestASignature:
    def test_by_hmac_is_that_of_rfc_4231_case_4(self) -> None:
        digest = "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
        expected = base64.b64encode(bytes.fromhex(digest)).decode()
        assert Secret(bytes(range(1, 26))).sign(b"\xcd" * 50) == f"v1,{expected}"

    def test_by_ed25519_is_that_of_rfc_8032_test_3(self) -> None:
        pair = KeyPair(
            bytes.fromhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7")
        )
        public = "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025"
        signature = (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        )
        assert pair.public.raw.hex() == public
        assert (
            pair.sign(b"\xaf\x82") == f"v1a,{base64.b64encode(bytes.fromhex(signature)).decode()}"
        )

    @given(secrets, ids, st.text())
    def test_is_what_the_reference_library_makes(self, key: Secret, id_: str, text: str) -> None:
        now = time.time()
        headers = dict(signing.sign([key], id_, now, text.encode("utf-8", "replace")))
        body = text.encode("utf-8", "replace").decode()
        Webhook(key.text).verify(body, headers, json_parse=False)

    def test_is_refused_by_the_reference_library_under_another_key(self) -> None:
        headers = signed(SECRET, now=time.time())
        with pytest.raises(WebhookVerificationError):
            Webhook(OTHER.text).verify(BODY, headers, json_parse=False)

    def test_of_several_keys_verifies_with_each_in_the_reference_library(self) -> None:
        headers = signed(SECRET, OTHER, now=time.time())
        for key in (SECRET, OTHER):
            assert Webhook(key.text).verify(BODY, headers) == {"task": "é"}

    def test_has_whole_seconds(self) -> None:
        assert signed(SECRET)["webhook-timestamp"] == "1700000000"

    def test_without_keys_is_left_out(self) -> None:
        assert signed() == {"webhook-id": ID, "webhook-timestamp": "1700000000"}

    def test_of_an_id_with_a_dot_is_not_made(self) -> None:
        with pytest.raises(ValueError, match="dot"):
            signing.sign([SECRET], "msg.1", NOW, BODY)


class TestVerification:
    def test_gives_the_id(self) -> None:
        assert verify([SECRET], signed(SECRET), BODY, NOW) == ID
        assert verify([PAIR.public], signed(PAIR), BODY, NOW) == ID

    def test_takes_what_the_reference_library_signs(self) -> None:
        moment = datetime.fromtimestamp(int(NOW), tz=UTC)
        headers = {
            "Webhook-Id": ID,
            "Webhook-Timestamp": str(int(NOW)),
            "Webhook-Signature": Webhook(SECRET.text).sign(ID, moment, BODY.decode()),
        }
        assert verify([SECRET], headers, BODY, NOW) == ID

    def test_during_a_rotation_takes_old_and_new(self) -> None:
        headers = signed(SECRET, OTHER, PAIR)
        for known in ([SECRET], [OTHER], [PAIR.public], [PublicKey(b"x" * 32), PAIR.public]):
            assert verify(known, headers, BODY, NOW) == ID

    def test_after_a_rotation_refuses_the_old(self) -> None:
        with pytest.raises(SignatureMismatch, match="no known key"):
            verify([OTHER], signed(SECRET, PAIR), BODY, NOW)

    @pytest.mark.parametrize("off", [-301, 301])
    def test_refuses_what_is_not_of_now(self, off: int) -> None:
        with pytest.raises(SignatureMismatch, match="timestamp"):
            verify([SECRET], signed(SECRET), BODY, NOW + off)

    @pytest.mark.parametrize("off", [-299, 0, 299])
    def test_takes_what_is_nearly_of_now(self, off: int) -> None:
        assert verify([SECRET], signed(SECRET), BODY, NOW + off) == ID

    @pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
    def test_needs_every_header(self, name: str) -> None:
        headers = signed(SECRET)
        del headers[name]
        with pytest.raises(SignatureMismatch, match=name):
            verify([SECRET], headers, BODY, NOW)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("webhook-id", "msg_2"),
            ("webhook-id", "msg.1"),
            ("webhook-timestamp", "1700000001"),
            ("webhook-timestamp", "١٧٠٠٠٠٠٠٠٠"),
            ("webhook-timestamp", "9" * 5000),
            ("webhook-timestamp", "-1"),
            ("webhook-timestamp", "nan"),
            ("webhook-signature", ""),
            ("webhook-signature", "v1"),
            ("webhook-signature", "v1,"),
            ("webhook-signature", "v1a,é"),
            ("webhook-signature", "v1,\udce9"),
        ],
    )
    def test_refuses_other_headers(self, name: str, value: str) -> None:
        with pytest.raises(SignatureMismatch):
            verify([SECRET, PAIR.public], signed(SECRET, PAIR) | {name: value}, BODY, NOW)

    def test_refuses_another_body(self) -> None:
        with pytest.raises(SignatureMismatch):
            verify([SECRET, PAIR.public], signed(SECRET, PAIR), BODY + b" ", NOW)

    def test_refuses_a_signature_under_the_name_of_another_scheme(self) -> None:
        headers = signed(PAIR)
        headers["webhook-signature"] = headers["webhook-signature"].replace("v1a,", "v1,")
        with pytest.raises(SignatureMismatch):
            verify([PAIR.public], headers, BODY, NOW)

    @given(st.lists(secrets, min_size=1, max_size=4, unique=True), st.data())
    def test_takes_what_any_known_key_signed_and_nothing_else(
        self, keys: list[Secret], data: st.DataObject
    ) -> None:
        signers = data.draw(st.lists(st.sampled_from(keys), unique=True))
        known = data.draw(st.lists(st.sampled_from(keys), min_size=1, unique=True))
        headers = {"webhook-signature": "", **signed(*signers)}
        try:
            verify(known, headers, BODY, NOW)
            verified = True
        except SignatureMismatch:
            verified = False
        assert verified == bool(set(signers) & set(known))


class TestAKey:
    @pytest.mark.parametrize("key", [SECRET, OTHER])
    def test_comes_back_from_its_text(self, key: Secret) -> None:
        assert read_secret(key.text) == key

    def test_may_come_without_padding(self) -> None:
        assert read_secret(SECRET.text.rstrip("=")) == SECRET

    @pytest.mark.parametrize("size", [0, 1, 23, 65])
    def test_that_is_too_short_or_too_long_is_none(self, size: int) -> None:
        with pytest.raises(ValueError, match="24 to 64"):
            Secret(b"x" * size)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "whsec",
            "whsec_",
            "whsec_hush!" + "A" * 32,
            "whsec_" + "é" * 44,
            "whpk_" + "A" * 42,
            "whsk_" + base64.b64encode(b"s" * 32).decode(),
            "A" * 44,
        ],
    )
    def test_that_is_none_is_not_repeated(self, text: str) -> None:
        with pytest.raises(ValueError, match="webhook") as caught:
            read_secret(text)
        assert len(text) < 10 or text not in str(caught.value)

    def test_is_not_shown(self) -> None:
        assert SECRET.text not in f"{SECRET!r}{SECRET}"
        for key in (SECRET, PAIR):
            assert "ssss" not in f"{key!r}{key}"
            assert "pppp" not in f"{key!r}{key}"


class TestTheReceiversOwnSecrets:
    def test_are_tokens_of_their_form(self) -> None:
        assert own_secrets(SECRET.text) == (SECRET,)
        assert own_secrets(f"{SECRET.text} {OTHER.text}") == (SECRET, OTHER)

    def test_may_be_in_base64url(self) -> None:
        raw = b"\xfb\xff\xfe" * 10
        text = "whsec_" + base64.urlsafe_b64encode(raw).decode()
        assert "-" in text
        assert own_secrets(text) == (Secret(raw),)

    @pytest.mark.parametrize(
        "token",
        ["", "token", "whsec_short", PAIR.public.text, f"{SECRET.text} x", f"x {SECRET.text}"],
    )
    def test_are_no_other_tokens(self, token: str) -> None:
        assert own_secrets(token) == ()
