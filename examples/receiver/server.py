"""The receiver's HTTP: POST takes a notification in, GET shows what has arrived."""

from __future__ import annotations

import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from examples.receiver.inbox import Inbox
from examples.receiver.page import HEADERS, page
from examples.receiver.proofs import Proofs, Unproven
from examples.receiver.reading import read

__all__ = ["Receiver"]

#: A notification has less bytes than a number of so many digits can say; and seconds to wait for more of it.
DIGITS, PATIENCE = 8, 30


class Receiver(ThreadingHTTPServer):
    """Listens on this machine. `asks` says for the page what it wants proven."""

    daemon_threads = True

    def __init__(self, port: int, proofs: Proofs, asks: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.proofs, self.asks, self.inbox = proofs, asks, Inbox()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Receiver
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_POST(self) -> None:
        """Take a notification: whoever answers 2xx has it, and is not told again."""
        length = self.headers.get("Content-Length", "")
        digits = len(length) if length.isascii() and length.isdecimal() else 0
        if not 0 < digits < DIGITS:
            self.close_connection = True  # what follows is not read
            self._answer(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE if digits else HTTPStatus.LENGTH_REQUIRED
            )
            return
        self._answer(self._taken(self.rfile.read(int(length))))

    def _taken(self, body: bytes) -> HTTPStatus:
        """Take it in, and say by what status."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        now, id_ = time.time(), headers.get("webhook-id", "")
        inbox = self.server.inbox
        try:
            proven = self.server.proofs.check(headers, body, now)  # before the body is parsed
            told = read(body)
        except Unproven as why:
            inbox.refuse(at=now, path=self.path, id_=id_, why=str(why))
            return HTTPStatus.UNAUTHORIZED
        except (ValueError, RecursionError):
            inbox.refuse(at=now, path=self.path, id_=id_, why="it is no JSON object")
            return HTTPStatus.BAD_REQUEST
        inbox.take(at=now, path=self.path, id_=id_, told=told, proven=proven)
        return HTTPStatus.NO_CONTENT

    def do_GET(self) -> None:
        """Show the page at `/`."""
        if self.path != "/":
            self._answer(HTTPStatus.NOT_FOUND)
            return
        shown = page(self.server.inbox, self.server.asks).encode()
        self._answer(HTTPStatus.OK, shown, *HEADERS)

    def _answer(self, status: HTTPStatus, body: bytes = b"", *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the standard library
        """Say nothing: the page does."""
