"""Signed cards: every key signs, the same card always alike, and the official SDK verifies any of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from a2a.utils.signing import InvalidSignaturesError, NoSignatureError
from hypothesis import given

from a2a_tasks.protocol.dialects import cards
from a2a_tasks.signatures.keys import read_keys
from a2a_tasks.signatures.signing import sign_card
from tests.support.protocol.card_schemas import check
from tests.support.signatures.given import (
    CARD,
    EDWARDS,
    NIST,
    OTHER,
    at_leisure,
    by_the_sdk,
    sign,
    tampered,
)
from tests.unit.protocol.test_cards import ALL, FULL, any_cards

JKU = "https://h/.well-known/jwks.json"


def headers(card: dict[str, Any]) -> list[dict[str, str]]:
    """The protected headers, decoded."""
    protected = [one["protected"] for one in card["signatures"]]
    return [json.loads(base64.urlsafe_b64decode(text + "==")) for text in protected]


class TestASignature:
    def test_says_algorithm_key_type_and_where_keys_are(self) -> None:
        nist, edwards = headers(sign(CARD, NIST, EDWARDS, jku=JKU, loosely=False))
        assert nist == {"alg": "ES256", "kid": NIST.kid, "typ": "JOSE", "jku": JKU}
        assert edwards == {"alg": "EdDSA", "kid": EDWARDS.kid, "typ": "JOSE", "jku": JKU}

    def test_says_no_place_of_keys_if_there_is_none(self) -> None:
        assert "jku" not in headers(sign(CARD, NIST))[0]

    def test_is_in_its_schema_and_without_padding(self) -> None:
        card = sign(CARD, NIST)
        check("v10", card)
        assert "=" not in str(card["signatures"])

    def test_is_the_same_wherever_it_is_made(self) -> None:
        twins = [read_keys(json.dumps(key.as_dict(private=True)))[0] for key in (NIST, EDWARDS)]
        reordered = dict(sorted(CARD.items()))
        assert sign(reordered, *twins)["signatures"] == sign(CARD, NIST, EDWARDS)["signatures"]

    def test_is_of_each_key_the_newest_first(self) -> None:
        kids = [header["kid"] for header in headers(sign(CARD, OTHER, NIST, loosely=False))]
        assert kids == [OTHER.kid, NIST.kid]

    def test_is_of_both_forms_where_they_differ(self) -> None:
        assert len(sign(CARD, NIST)["signatures"]) == 2
        assert len(sign(CARD, NIST, loosely=False)["signatures"]) == 1
        bare = {"name": "E", "capabilities": {"streaming": False}}
        assert len(sign(bare, NIST)["signatures"]) == 1

    def test_stands_beside_those_that_are_there(self) -> None:
        there = {"protected": "e30", "signature": "AA"}
        first, *made = sign({**CARD, "signatures": [there]}, NIST)["signatures"]
        assert first == there
        assert made == sign(CARD, NIST)["signatures"]

    @pytest.mark.parametrize("form", ["s0", "v00", "v01", "v02", "legacy"])
    def test_is_not_in_cards_that_have_no_place_for_it(self, form: str) -> None:
        card = ALL[form](FULL)
        assert sign_card(card, form, [NIST]) is card

    def test_is_not_there_without_a_key(self) -> None:
        assert sign(CARD) == CARD

    def test_is_not_of_what_has_no_canonical_form(self) -> None:
        extension = {"uri": "u", "params": {"n": 2**60}}
        with pytest.raises(ValueError, match="canonical"):
            sign({**CARD, "capabilities": {"extensions": [extension]}}, NIST)


class TestTheOfficialVerifier:
    @pytest.mark.parametrize("key", [NIST, EDWARDS], ids=["ES256", "EdDSA"])
    def test_verifies_a_card_of_1_0(self, key: Any) -> None:
        by_the_sdk(sign(CARD, key, jku=JKU), key)

    @at_leisure
    @given(card=any_cards)
    def test_verifies_any_card(self, card: dict[str, Any]) -> None:
        """Also those with something empty where something must be, and with texts beyond ASCII."""
        by_the_sdk(sign(cards.final({**card, "signatures": []}), EDWARDS), EDWARDS)

    def test_verifies_a_hybrid_by_what_it_is_of_1_0(self) -> None:
        hybrid = cards.hybrid({**FULL, "signatures": []}, "https://h/0.3")
        by_the_sdk(sign_card(hybrid, "hybrid", [NIST]), NIST)

    def test_verifies_by_either_key_while_they_are_rotated(self) -> None:
        card = sign(CARD, OTHER, NIST)
        by_the_sdk(card, NIST)
        by_the_sdk(card, OTHER)

    def test_needs_the_loose_form_where_something_is_empty(self) -> None:
        """Why there are two: `{"list": []}` and `{"mtlsSecurityScheme": {}}` are gone before it verifies."""
        with pytest.raises(InvalidSignaturesError):
            by_the_sdk(sign(CARD, NIST, loosely=False), NIST)

    def test_refuses_a_card_that_was_changed(self) -> None:
        with pytest.raises(InvalidSignaturesError):
            by_the_sdk(tampered(sign(CARD, NIST), name="Evil"), NIST)

    def test_refuses_another_key_and_no_signature(self) -> None:
        with pytest.raises(InvalidSignaturesError):
            by_the_sdk(sign(CARD, NIST), OTHER)
        with pytest.raises(NoSignatureError):
            by_the_sdk(CARD, NIST)
