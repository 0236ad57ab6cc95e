"""The answer of Django's views, the start page and the admin, while the database is away: 503, with Retry-After."""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from a2a_tasks.conf import is_ours
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store.db import AWAY

__all__ = ["OutagePage"]

_outage = ThrottledLogger(logging.getLogger(__name__), "a page was not shown, the database is away")
TEXT = "The database does not answer just now. Try again in a few seconds.\n"


class OutagePage(MiddlewareMixin):
    """Middleware. The protocol does not pass here; the bindings write its errors."""

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """Return an answer if the database is away; Django handles all other exceptions."""
        if not isinstance(fault, AWAY) or not is_ours(request.path_info):
            return None
        _outage.warning(fault)
        headers = {"Retry-After": "5", "Cache-Control": "no-store"}
        return HttpResponse(TEXT, status=503, content_type="text/plain", headers=headers)
