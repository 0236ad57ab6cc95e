"""The answers of Django's pages when the database is away (503, with Retry-After) or refuses a value (400).

A value that no row can have, such as NUL in a text, would count as a failure of the host otherwise.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import DataError, connection
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from psycopg.pq import TransactionStatus

from a2a_tasks.conf import conf, is_ours
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store.db import is_away

__all__ = ["FaultPages"]

logger = logging.getLogger(__name__)
_outage = ThrottledLogger(logger, "a page was not shown, the database is away")
SILENT = "The database does not answer just now. Try again in a few seconds.\n"
UNFIT = "The address or the form has a text or a number that cannot be in the database.\n"


class FaultPages(MiddlewareMixin):
    """Middleware. The protocol does not pass here; the API checks its input before.

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
        """Return an answer to a fault of the database; Django handles all other exceptions."""
        if not is_ours(request.path_info):
            return None
        if is_away(fault):
            _outage.warning(fault)
            return _answer(503, SILENT, {"Retry-After": "5"})
        if isinstance(fault, DataError):
            kind = type(fault.__cause__)
            logger.warning("a page was requested with a value that no row can have: %s", kind)
            return _answer(400, UNFIT, {})
        return None


def _answer(status: int, text: str, headers: dict[str, str]) -> HttpResponse:
    headers = {**headers, "Cache-Control": "no-store"}
    return HttpResponse(text, status=status, content_type="text/plain", headers=headers)


def _limit_locks(execute: Any, *statement: Any) -> Any:
    """Limit the session before its first statement. Django calls this wrapper.

    That statement may begin a transaction. The limit is set before it: a transaction that is rolled back would undo it.
    In one that a caller of the request has begun, as tests do, nothing is limited.
    """
    session: Any = connection.connection
    idle = session.pgconn.transaction_status == TransactionStatus.IDLE
    if idle and not vars(session).get("has_lock_limit"):
        with connection.wrap_database_errors:
            autocommit, session.autocommit = session.autocommit, True
            session.execute(f"set lock_timeout = '{float(conf.DATABASE_SECONDS)}s'")
            session.autocommit, session.has_lock_limit = autocommit, True
    return execute(*statement)
