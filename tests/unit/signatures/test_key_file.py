"""A file of keys over time: what comes signs at once, what goes is verified for a while, what is revoked never again."""

from __future__ import annotations

import json

import pytest

from a2a_tasks.signatures.key_file import revoke, rotate, write_jwks
from a2a_tasks.signatures.keys import CardKey, read_keys
from a2a_tasks.signatures.verification import CardUnverified, verify
from tests.support.signatures.given import CARD, EDWARDS, NIST, NOW, OTHER, by_the_sdk, public, sign

LATER = NOW + 1000


def signing(keys: tuple[CardKey, ...], now: float) -> list[CardKey]:
    """Those that sign then."""
    return [key for key in keys if key.signs(now)]


class TestRotation:
    def test_has_both_sign_and_both_verify_until_the_end_of_the_former(self) -> None:
        before = read_keys(write_jwks([NIST]))
        during = rotate(write_jwks(before), EDWARDS, until=LATER, now=NOW)
        assert [key.kid for key in during] == [EDWARDS.kid, NIST.kid]
        old, new = sign(CARD, *before), sign(CARD, *signing(during, NOW))
        for keys in (
            before,
            during,
        ):  # readers that have seen the new keys, and those that have not
            for card in (old, new):
                assert verify(card, public(*keys), now=NOW).card["name"] == CARD["name"]
        by_the_sdk(new, NIST)
        by_the_sdk(new, EDWARDS)

    def test_ends_with_the_newest_alone(self) -> None:
        during = rotate(write_jwks([NIST]), EDWARDS, until=LATER, now=NOW)
        assert [key.kid for key in signing(during, LATER)] == [EDWARDS.kid]
        with pytest.raises(CardUnverified, match="has expired"):
            verify(sign(CARD, NIST), public(*during), now=LATER)
        after = rotate(write_jwks(during), OTHER, until=LATER + 1000, now=LATER)
        assert [key.kid for key in after] == [OTHER.kid, EDWARDS.kid]

    def test_makes_no_end_later(self) -> None:
        soon = rotate(write_jwks([NIST]), EDWARDS, until=LATER, now=NOW)
        again = rotate(write_jwks(soon), OTHER, until=LATER + 1000, now=NOW)
        assert [key.times.get("exp") for key in again] == [None, LATER + 1000, LATER]


class TestRevocation:
    def test_takes_the_key_away(self) -> None:
        left = revoke(write_jwks([EDWARDS, NIST]), EDWARDS.kid)
        assert [key.kid for key in left] == [NIST.kid]
        with pytest.raises(CardUnverified, match="is known"):
            verify(sign(CARD, EDWARDS), public(*left), now=NOW)

    @pytest.mark.parametrize(
        ("kid", "why"), [("x", "no key 'x'"), (NIST.kid, "only key")], ids=["unknown", "last"]
    )
    def test_is_of_a_key_that_is_there_and_not_the_last(self, kid: str, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            revoke(write_jwks([NIST]), kid)


class TestTheFile:
    def test_is_read_as_it_was_written(self) -> None:
        text = write_jwks([EDWARDS, *read_keys(write_jwks(read_keys(write_jwks([NIST]))))])
        assert write_jwks(read_keys(text)) == text

    def test_may_have_keys_without_private_halves(self) -> None:
        (public_only,) = read_keys(json.dumps({"keys": public(NIST)}))
        (read,) = read_keys(write_jwks([public_only]))
        assert not read.signs(NOW)
