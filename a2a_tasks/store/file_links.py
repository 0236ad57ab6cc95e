"""Download URLs of files: signed, and good for a while. Nothing of them is stored (decision 8).

The end of a URL's time is rounded, so that everybody who looks within A2A_FILE_URL_SECONDS is given the same one.
"""

from __future__ import annotations

import functools
import time
from urllib.parse import urlencode

from django.core.signing import BadSignature, Signer

from a2a_tasks.conf import conf
from a2a_tasks.protocol.files import Link

__all__ = ["requires_caller", "is_signed", "make_linker"]

SALT = "a2a.files"
#: Digits of a moment in seconds; more is no moment.
MAX_LENGTH = 12


def requires_caller() -> bool:
    """Does a URL open only to the caller it was made for?"""
    return bool(conf.FILE_URLS == "authenticated")


def make_linker(agent: str, base_url: str, principal: str) -> Link:
    """From a file of this agent's to a URL for this principal."""
    return functools.partial(_url, agent, base_url, principal)


def _url(agent: str, base_url: str, principal: str, file_id: str) -> str:
    seconds = max(1, int(conf.FILE_URL_SECONDS))
    expires = str((int(time.time()) // seconds + 2) * seconds)
    signature = Signer(salt=SALT).signature(_sign(agent, file_id, expires, principal))
    query = urlencode({"expires": expires, "signature": signature})
    return f"{base_url.rstrip('/')}/agents/{agent}/files/{file_id}?{query}"


def _sign(agent: str, file_id: str, expires: str, principal: str) -> str:
    whom = principal if requires_caller() else ""
    return f"{agent}/{file_id}/{expires}/{whom}"


def is_signed(agent: str, file_id: str, expires: str, signature: str, principal: str) -> bool:
    """Is this a URL of ours, for this principal, and still good?"""
    if not (expires.isascii() and expires.isdecimal() and len(expires) <= MAX_LENGTH):
        return False
    if ":" in signature:  # what stands before it would be read as the end of the principal
        return False
    try:
        Signer(salt=SALT).unsign(f"{_sign(agent, file_id, expires, principal)}:{signature}")
    except BadSignature:
        return False
    return int(expires) > time.time()
