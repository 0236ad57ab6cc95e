"""Security headers of every page of the host."""

from __future__ import annotations

from dataclasses import replace

from csp.constants import NONE, SELF
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase

from a2a_tasks.conf import is_ours

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


#: Only resources of this host, no inline scripts and styles, no framing.
POLICY = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF],
    "font-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}


class PageHeaders(CSPMiddleware):
    """Middleware for the host's pages alone. Headers that a view has set are kept, and `csp_update` works."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        """Return the policy of the host's pages; the project's policy is for its other pages."""
        parts: PolicyParts = super().get_policy_parts(request, response, report_only)
        return parts if report_only else replace(parts, config=parts.config or POLICY)

    def process_request(self, request: HttpRequest) -> None:
        """Make no nonce: no page has inline scripts, and the project may have nonces of its own."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Add the missing headers."""
        if not is_ours(request.path_info):
            return response
        super().process_response(request, response)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response
