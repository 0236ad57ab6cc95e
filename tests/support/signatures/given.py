"""Keys and cards for tests of signatures, and other people's verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jwt
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard
from a2a.utils.signing import create_signature_verifier
from hypothesis import HealthCheck, settings

from a2a_tasks.protocol.dialects import cards
from a2a_tasks.signatures.keys import CardKey
from a2a_tasks.signatures.signing import sign_card
from tests.unit.protocol.test_cards import FULL

__all__ = [
    "CARD",
    "EDWARDS",
    "NIST",
    "NOW",
    "OTHER",
    "at_leisure",
    "by_the_sdk",
    "public",
    "sdk_verifier",
    "sign",
    "tampered",
]

#: Laws about any card, on a machine that has other things to do.
at_leisure = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NOW = 1_800_000_000.0
NIST, EDWARDS, OTHER = CardKey.new("ES256"), CardKey.new("EdDSA"), CardKey.new("ES256")
#: A card of 1.0 with everything in it, and nothing to verify it by.
CARD = {name: value for name, value in cards.final(FULL).items() if name != "signatures"}


def public(*keys: CardKey) -> list[dict[str, Any]]:
    """What verifies them, as it stands in a JWK Set."""
    return [key.as_dict(private=False) for key in keys]


def tampered(card: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """The card with other members, and the signatures it had."""
    return {**card, **members}


def sdk_verifier(jwks: Iterable[Mapping[str, Any]]) -> Callable[[AgentCard], None]:
    """The official SDK's, with these keys and no others."""
    known = {key["kid"]: jwt.PyJWK.from_dict(dict(key)) for key in jwks}

    def key_of(kid: str | None, jku: str | None) -> jwt.PyJWK:
        if kid not in known:
            raise jwt.PyJWKError(f"{kid} is not known")
        return known[kid]

    return create_signature_verifier(key_of, ["ES256", "EdDSA"])


def by_the_sdk(card: Mapping[str, Any], *keys: CardKey) -> None:
    """Verify as the official SDK does. Raises its SignatureVerificationError."""
    sdk_verifier(public(*keys))(parse_agent_card(dict(card)))


def sign(card: Mapping[str, Any], *keys: CardKey, **more: Any) -> dict[str, Any]:
    """The card of 1.0, signed."""
    return dict(sign_card(card, "v10", keys, **more))
