"""What browsers are told of every page beside its content security policy."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

__all__ = ["PageHeaders"]

#: Features of browsers that no page here uses, so that none can be made to.
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
    """Middleware. A view that says otherwise is left its word."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Add what is missing."""
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response
