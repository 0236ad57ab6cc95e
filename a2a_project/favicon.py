"""The icon of the host at `/favicon.ico`, which browsers request from every host."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

__all__ = ["favicon"]

#: Two speech balloons, in a colour that is visible on light and dark.
PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g fill="#3b82b8">\
<path d="M3 4h16v12h-8l-5 4v-4H3z"/><path d="M13 18h8V9h8v13h-3v5l-5-5h-8z" opacity=".7"/></g></svg>
"""
FRESH_SECONDS = 24 * 3600


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Send the icon: browsers use its type, not its name."""
    response = HttpResponse(PICTURE, content_type="image/svg+xml")
    patch_cache_control(response, public=True, max_age=FRESH_SECONDS)
    return response
