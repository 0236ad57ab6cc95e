"""The check of host names for the protocol, where callers need no credentials.

Another site may let its name point to this machine (DNS rebinding). A browser here then takes requests of that site's
pages for same-origin ones, and only the name in `Host` distinguishes them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from a2a_tasks.agents.security import allows_anonymous
from a2a_tasks.bindings.http import Scope, is_served, list_hosts
from a2a_tasks.conf import conf

__all__ = ["is_ours"]


def is_ours(scope: Scope) -> bool:
    """Return whether the request names a host of this installation.

    Any name is accepted where callers need credentials: other sites have none.
    """
    if not allows_anonymous():
        return True
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    ours = urlsplit(str(conf.PUBLIC_URL)).hostname or ""
    return is_served(named.decode("latin-1"), (*list_hosts(), ours))
