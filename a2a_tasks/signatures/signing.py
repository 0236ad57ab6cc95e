"""Signing cards (A2A 1.0 §8.4): JWS with a detached payload (RFC 7515 appendix F), one for each key and form."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from a2a_tasks.protocol.jsontext import write
from a2a_tasks.signatures.forms import SIGNED, loose, payload, strict
from a2a_tasks.signatures.keys import CardKey

__all__ = ["encode_base64url", "sign_card"]


def sign_card(
    card: Mapping[str, Any],
    form: str,
    keys: Iterable[CardKey],
    *,
    jku: str = "",
    loosely: bool = True,
) -> Mapping[str, Any]:
    """Return the card with a signature of each key added; unchanged if its form has no signatures.

    With `loosely`, each key adds a second signature if the loose form differs. Raises ValueError for a card that cannot
    be signed.
    """
    made = list(_signatures(card, form, keys, jku, loosely)) if form in SIGNED else []
    return {**card, "signatures": [*card.get("signatures", ()), *made]} if made else card


def encode_base64url(data: bytes) -> str:
    """Encode as base64url without padding (RFC 7515 §2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signatures(
    card: Mapping[str, Any], form: str, keys: Iterable[CardKey], jku: str, loosely: bool
) -> Iterator[dict[str, str]]:
    documents = [strict(card, form), loose(card, form) if loosely else None]
    payloads = [
        encode_base64url(payload(document)) for document in documents if document is not None
    ]
    for key in keys:
        header = {
            "alg": key.algorithm,
            "kid": key.kid,
            "typ": "JOSE",
            **({"jku": jku} if jku else {}),
        }
        protected = encode_base64url(write(header))
        for content in payloads:
            signature = _signature(key, f"{protected}.{content}".encode())
            yield {"protected": protected, "signature": signature}


@lru_cache(maxsize=256)
def _signature(key: CardKey, data: bytes) -> str:
    """Sign, with a cache for cards of single callers, which are mostly equal; public cards are cached whole."""
    return encode_base64url(key.sign(data))
