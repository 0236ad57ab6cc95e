"""Which names the protocol answers to, where callers need no credentials.

Another site may have its name lead to this machine (DNS rebinding). A browser here then takes what its pages send for their
own site's, and all that tells it from others is the name in `Host`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from a2a_tasks.agents.security import anonymous_allowed
from a2a_tasks.bindings.http import Scope, is_served
from a2a_tasks.conf import conf

__all__ = ["is_ours"]


def is_ours(scope: Scope) -> bool:
    """Does this request name a host that is ours? Every name will do where callers need credentials: no other site has those."""
    if not anonymous_allowed():
        return True
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    ours = urlsplit(str(conf.PUBLIC_URL)).hostname or ""
    return is_served(named.decode("latin-1"), (*settings.ALLOWED_HOSTS, ours))
