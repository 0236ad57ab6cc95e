"""The keys of webhooks from the settings (docs/decisions/0019).

`A2A_WEBHOOK_SECRETS` holds master secrets, newest first; without any, they are made from `SECRET_KEY` and its fallbacks.
"""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings
from django.utils.encoding import force_bytes

from a2a_push.keyring import KeyRing
from a2a_tasks.conf import base_url, conf

__all__ = ["issuer", "ring"]

#: The issuer of tokens if the host has no public URL.
UNNAMED = "urn:a2a-host"


def ring() -> KeyRing:
    """Return the present keys: settings may change, in tests at least. Raises ValueError, without the keys."""
    return _ring(conf.WEBHOOK_SECRETS, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


def issuer() -> str:
    """Return the issuer of tokens: the public URL; the keys are at `/.well-known/jwks.json` below it."""
    return base_url() if conf.PUBLIC_URL else UNNAMED


@lru_cache(maxsize=4)
def _ring(own: str, django: str | bytes, fallbacks: tuple[str | bytes, ...]) -> KeyRing:
    named = [text.strip() for text in own.split(",") if text.strip()]
    if not named:
        return KeyRing.from_keys(force_bytes(key) for key in (django, *fallbacks))
    try:
        return KeyRing.of(named)
    except ValueError as flaw:
        raise ValueError(f"A2A_WEBHOOK_SECRETS: {flaw}") from None
