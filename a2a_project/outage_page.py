"""What Django's pages, the front page and the admin, say while the database is away: 503, and when to come again."""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from a2a_tasks.outages import Outage
from a2a_tasks.store.hop import AWAY

__all__ = ["OutagePage"]

_outage = Outage(logging.getLogger(__name__), "a page was not shown, the database is away")
TEXT = "The database does not answer just now. Try again in a few seconds.\n"


class OutagePage(MiddlewareMixin):
    """Middleware. The protocol does not pass here; its own errors are told by the bindings."""

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """An answer to what a view raised for want of the database; anything else is Django's to handle."""
        if not isinstance(fault, AWAY):
            return None
        _outage.count(fault)
        headers = {"Retry-After": "5", "Cache-Control": "no-store"}
        return HttpResponse(TEXT, status=503, content_type="text/plain", headers=headers)
