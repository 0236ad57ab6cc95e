"""The redirect URI of single sign-on: at A2A_PUBLIC_URL, whatever a proxy makes of host and protocol."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponseBase

from a2a_tasks.conf import conf

__all__ = ["at_public_url"]

View = Callable[..., HttpResponseBase]


def at_public_url(view: View) -> View:
    """Return the view with a request whose absolute URLs begin with A2A_PUBLIC_URL, if that is set.

    allauth makes the redirect URI by `request.build_absolute_uri`, and issuers refuse any but the registered one.
    """

    @wraps(view)
    def visit(request: HttpRequest, **names: str) -> HttpResponseBase:
        if public := str(conf.PUBLIC_URL).rstrip("/"):
            ours = request.build_absolute_uri

            def absolute(location: str | None = None) -> str:
                return public + location if location and location[0] == "/" else ours(location)

            request.build_absolute_uri = absolute  # type: ignore[method-assign]
        return view(request, **names)

    return visit
