"""Addresses below `/api/`: the management API, its description, and a page to read and try it on."""

from __future__ import annotations

import functools
from typing import Any

from django.contrib.admin.views.decorators import staff_member_required
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api import schema  # noqa: F401 - what it says of the door registers itself
from a2a_tasks.api.action import View
from a2a_tasks.api.door import READ, Right
from a2a_tasks.api.problems import NotFound

__all__ = ["urlpatterns"]

#: No script, style or request but of this host's own files.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Description(View):
    """The API as OpenAPI has it; for whoever may read anything, and all of the staff."""

    schema = None

    def get(self, request: Request) -> Response:
        """Show it."""
        return Response(_description(), content_type="application/vnd.oai.openapi+json")

    get.right = Right(READ, ())  # type: ignore[attr-defined]


@functools.cache
def _description() -> dict[str, Any]:
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return found


@receiver(setting_changed)
def _forget(**_: Any) -> None:
    """The ways in may have changed."""
    _description.cache_clear()


class Nowhere(View):
    """Every other address: there is nothing, and only who was let in learns so."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Look at who asks, then say that there is nothing."""
        super().initial(request, *args, **kwargs)
        raise NotFound


@require_safe
@staff_member_required
def docs(request: HttpRequest) -> HttpResponse:
    """The page: Swagger UI from this host's own files, without a line of script in it."""
    page = render(request, "api/docs.html")
    page.headers["Content-Security-Policy"] = POLICY
    return page


_v1: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="api-docs")),
    path("docs/", docs, name="api-docs"),
    path("openapi.json", Description.as_view(), name="api-description"),
    path("webhooks/", include("a2a_push.api.urls")),
    path("", include("a2a_tasks.api.urls")),
    re_path("", Nowhere.as_view()),
]
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api-docs")),
    path("v1/", include(_v1)),
    re_path("", Nowhere.as_view()),
]
