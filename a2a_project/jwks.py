"""The host's public keys at `/.well-known/jwks.json`, with which webhooks' receivers and readers of cards verify."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import condition, require_safe

from a2a_push import bearer, keys
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.signatures import ring

__all__ = ["jwks"]

#: Seconds for which readers may cache the keys. Add a new key in second place first, so that it signs only after readers
#: have it.
FRESH_SECONDS = 300


def _keys() -> list[dict[str, Any]]:
    """Return the keys of cards, then those of tokens, each newest first."""
    of_cards = [key.as_dict(private=False) for key in ring.list_published()]
    return [*of_cards, *bearer.jwks(keys.ring().token_keys())["keys"]]


def _body() -> bytes:
    return write({"keys": _keys()})


def _etag(request: HttpRequest) -> str:
    return f'"{hashlib.sha256(_body()).hexdigest()[:32]}"'


@require_safe
@condition(etag_func=_etag)
def jwks(request: HttpRequest) -> HttpResponse:
    """Send the keys."""
    response = HttpResponse(_body(), content_type="application/jwk-set+json")
    patch_cache_control(response, public=True, max_age=FRESH_SECONDS)
    return response
