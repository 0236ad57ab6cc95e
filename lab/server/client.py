"""The plainest HTTP client: it shows what arrives when, and can refuse to read."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds a read may take; reached only when something is broken.
PATIENCE = 30.0


@contextmanager
def get(
    port: int, path: str, headers: dict[str, str] | None = None
) -> Iterator[http.client.HTTPResponse]:
    """Ask on a connection of its own, closed at the end; the body is not read yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with closing(connection):
        connection.request("GET", path, headers=headers or {})
        with connection.getresponse() as response:
            yield response


def text(port: int, path: str, headers: dict[str, str] | None = None) -> str:
    """The body of an answer that is over at once."""
    with get(port, path, headers) as response:
        return response.read().decode()


@contextmanager
def asked(port: int, path: str) -> Iterator[socket.socket]:
    """A connection that has sent a request and read nothing; closed at the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        yield sock
