"""Which names the protocol answers to, where callers need no credentials.

Another site may have its name lead to this machine (DNS rebinding). A browser here then takes what its pages send for their
own site's, and all that tells it from others is the name in `Host`.
"""

from __future__ import annotations

import functools
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from a2a_tasks.agents.security import anonymous_allowed
from a2a_tasks.bindings.http import Scope
from a2a_tasks.conf import conf

__all__ = ["is_ours"]


def is_ours(scope: Scope) -> bool:
    """Is a request for a name of ours, or does it need credentials anyway, which no other site has a browser send?"""
    if not anonymous_allowed():
        return True
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return _is_ours(named, str(conf.PUBLIC_URL), tuple(settings.ALLOWED_HOSTS))


@functools.lru_cache(maxsize=64)
def _is_ours(named: bytes, public_url: str, allowed: tuple[str, ...]) -> bool:
    domain, _ = split_domain_port(named.decode("latin-1"))
    return bool(domain) and validate_host(domain, [*allowed, urlsplit(public_url).hostname or ""])
