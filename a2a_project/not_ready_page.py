"""The answer of Django's pages to a value that no row can have, such as NUL in a text: 400.

Without it such a value would count as a failure of the host.
"""

from __future__ import annotations

import logging

from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from a2a_tasks.conf import is_ours

__all__ = ["UnfitPage"]

logger = logging.getLogger(__name__)
TEXT = "The address or the form has a text or a number that cannot be in the database.\n"


class UnfitPage(MiddlewareMixin):
    """Middleware. The protocol and the API check their input before; for pages PostgreSQL refuses the value."""

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """Return an answer if the database refused a value; Django handles all other exceptions."""
        if not isinstance(fault, DataError) or not is_ours(request.path_info):
            return None
        logger.warning(
            "a page was requested with a value that no row can have: %s", type(fault.__cause__)
        )
        headers = {"Cache-Control": "no-store"}
        return HttpResponse(TEXT, status=400, content_type="text/plain", headers=headers)
