"""The views besides the resources: the OpenAPI description, the page to read and try it, and 404 for other URLs."""

from __future__ import annotations

import functools
from typing import Any

from csp.constants import SELF
from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.operators import READ, RequiredRight
from a2a_console.api.schema import DESCRIPTION
from a2a_console.api.viewsets import HostAPIView
from a2a_tasks.conf import conf, of_settings

__all__ = ["DescriptionView", "NowhereView", "describe_api", "show_docs"]


class DescriptionView(HostAPIView):
    """The OpenAPI description, for callers with `admin:read` and for all staff."""

    schema = None
    required_right = RequiredRight(READ, ())

    def get(self, request: Request) -> Response:
        """Return the description."""
        return Response(describe_api(), content_type="application/vnd.oai.openapi+json")


@of_settings
@functools.cache
def describe_api() -> dict[str, Any]:
    """Return the OpenAPI description."""
    patterns = [path("api/", include("a2a_console.api.urls"))]
    servers = [{"url": conf.PREFIX}] if conf.PREFIX else []
    with patched_settings({**DESCRIPTION, "SERVERS": servers}):
        found: dict[str, Any] = SchemaGenerator(patterns=patterns).get_schema(None, public=True)  # type: ignore[no-untyped-call]
    return found


class NowhereView(HostAPIView):
    """All other URLs: operators get 404, others 401."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then answer 404."""
        super().initial(request, *args, **kwargs)
        raise NotFound


@require_safe
@csp_update({"img-src": [SELF, "data:"]})
def show_docs(request: HttpRequest) -> HttpResponse:
    """Show Swagger UI from this host's own files, without a line of script in the page."""
    return render(request, "a2a_console/api_docs.html")
