"""Download URLs of files: signed, with an expiry time. They are not stored (decision 8).

The expiry time is rounded, so that all readers within A2A_FILE_URL_SECONDS get the same URL.
"""

from __future__ import annotations

import functools
from urllib.parse import urlencode

from django.core.signing import BadSignature, Signer

from a2a_tasks.conf import conf
from a2a_tasks.protocol.files import Link
from a2a_tasks.store import clock

__all__ = ["requires_caller", "is_signed", "make_linker"]

SALT = "a2a.files"
#: Maximum number of digits of an expiry time in seconds; longer values are invalid.
MAX_LENGTH = 12


def requires_caller() -> bool:
    """Return whether a URL works only for the caller who got it."""
    return bool(conf.FILE_URLS == "authenticated")


def make_linker(agent: str, base_url: str, principal: str) -> Link:
    """Return a function from the id of one of this agent's files to a URL for this principal."""
    return functools.partial(_url, agent, base_url, principal)


def _url(agent: str, base_url: str, principal: str, file_id: str) -> str:
    seconds = max(1, int(conf.FILE_URL_SECONDS))
    expires = str((int(clock.estimate()) // seconds + 2) * seconds)
    signature = Signer(salt=SALT).signature(_sign(agent, file_id, expires, principal))
    query = urlencode({"expires": expires, "signature": signature})
    return f"{base_url.rstrip('/')}/agents/{agent}/files/{file_id}?{query}"


def _sign(agent: str, file_id: str, expires: str, principal: str) -> str:
    whom = principal if requires_caller() else ""
    return f"{agent}/{file_id}/{expires}/{whom}"


def is_signed(agent: str, file_id: str, expires: str, signature: str, principal: str) -> bool:
    """Return whether this host signed the URL for this principal, and it has not expired."""
    if not (expires.isascii() and expires.isdecimal() and len(expires) <= MAX_LENGTH):
        return False
    if ":" in signature:  # the text before the colon would be read as the end of the principal
        return False
    try:
        Signer(salt=SALT).unsign(f"{_sign(agent, file_id, expires, principal)}:{signature}")
    except BadSignature:
        return False
    return int(expires) > clock.estimate()
