"""The answer of Django's views, the start page and the admin, while the database is away: 503, with Retry-After."""

from __future__ import annotations

import logging
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from a2a_tasks.conf import conf, is_ours
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store.db import AWAY

__all__ = ["OutagePage"]

_outage = ThrottledLogger(logging.getLogger(__name__), "a page was not shown, the database is away")
TEXT = "The database does not answer just now. Try again in a few seconds.\n"


class OutagePage(MiddlewareMixin):
    """Middleware. The protocol does not pass here; the bindings write its errors.

    A page waits for a row or table that somebody else has locked as long as a request of the protocol does, not for ever:
    a few such pages would end the console.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Limit the waits of the page for locks. Behind a pool of transactions, sessions belong to others, too."""
        if connection.vendor == "postgresql" and conf.PREPARE and is_ours(request.path_info):
            connection.execute_wrappers.append(_limit_locks)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """End the limit; the session ends with the request."""
        while _limit_locks in connection.execute_wrappers:
            connection.execute_wrappers.remove(_limit_locks)
        return response

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """Return an answer if the database is away; Django handles all other exceptions."""
        if not isinstance(fault, AWAY) or not is_ours(request.path_info):
            return None
        _outage.warning(fault)
        headers = {"Retry-After": "5", "Cache-Control": "no-store"}
        return HttpResponse(TEXT, status=503, content_type="text/plain", headers=headers)


def _limit_locks(execute: Any, *statement: Any) -> Any:
    """Limit the session before its first statement. Django calls this wrapper."""
    session: Any = connection.connection
    if not vars(session).get("has_lock_limit"):
        with connection.wrap_database_errors:
            session.execute(f"set lock_timeout = '{float(conf.DATABASE_SECONDS)}s'")
        session.has_lock_limit = True
    return execute(*statement)
