"""Security headers of every page, besides its content security policy."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

__all__ = ["PageHeaders"]

#: Features of browsers that no page uses, and that are therefore disabled.
UNUSED = (
    *(
        "accelerometer",
        "autoplay",
        "browsing-topics",
        "camera",
        "display-capture",
        "encrypted-media",
    ),
    *("fullscreen", "geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment"),
    *("picture-in-picture", "publickey-credentials-get", "screen-wake-lock", "usb"),
)
HEADERS = {
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in UNUSED),
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PageHeaders(MiddlewareMixin):
    """Middleware. Headers that a view has set are kept."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Add the missing headers."""
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response
