"""Docker's server of names, at 127.0.0.11 of a network: it knows the services, and nothing else."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Mapping, Sequence

from lab.containers.namespaces import run_in

__all__ = ["serve_names"]

A, HEAD = 1, struct.Struct("!6H")


def serve_names(network: int, addresses: Mapping[str, Sequence[str]]) -> socket.socket:
    """Answer queries for addresses in the network that the process has, until the socket is closed."""

    def bind() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("127.0.0.11", 53))
        return made

    server = run_in(network, bind)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                query, client = server.recvfrom(512)
                server.sendto(answer(query, addresses), client)

    threading.Thread(target=serve, daemon=True).start()
    return server


def answer(query: bytes, addresses: Mapping[str, Sequence[str]]) -> bytes:
    """Answer a query with all addresses of a name, or with the error that there is no such name."""
    number, *_ = HEAD.unpack_from(query)
    end, labels = HEAD.size, []
    while length := query[end]:
        labels.append(query[end + 1 : end + 1 + length].decode())
        end += 1 + length
    (kind,) = struct.unpack_from("!H", query, end + 1)
    question = query[HEAD.size : end + 5]
    known = addresses.get(".".join(labels), ())
    found = known if kind == A else ()
    rows = [struct.pack("!HHHLH", 0xC00C, A, 1, 600, 4) + socket.inet_aton(each) for each in found]
    flags = 0x8180 if known else 0x8183
    return HEAD.pack(number, flags, 1, len(rows), 0, 0) + question + b"".join(rows)
