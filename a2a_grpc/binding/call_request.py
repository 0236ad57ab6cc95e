"""An rpc's metadata and peer as the HTTP request that the other bindings have."""

from __future__ import annotations

import functools
import os
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from a2a_grpc.binding.call import GrpcCall
from a2a_tasks.access.credentials import PEER
from a2a_tasks.bindings.http import Request, is_served, list_hosts
from a2a_tasks.conf import conf, of_settings

__all__ = ["call_request"]


def call_request(call: GrpcCall) -> Request:
    """Return the request of a call: its metadata are the headers, except for binary ones."""
    metadata = [
        pair for pair in call.metadata if pair[0] != b"host" and not pair[0].endswith(b"-bin")
    ]
    client = call.peer
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", _host()), *metadata],
        "client": client,
        PEER: client,
    }
    return Request(scope, _receive_nothing)


async def _receive_nothing() -> MutableMapping[str, Any]:
    """Return an empty body: the call itself contains the message."""
    return {"type": "http.request"}


@of_settings
@functools.cache
def _host() -> bytes:
    """Return the host's HTTP address for cards, since gRPC metadata do not contain it: a name that is served."""
    if host := urlsplit(str(conf.PUBLIC_URL)).netloc:
        return host.encode()
    served = list_hosts()
    name = served[0].lstrip(".*") if served and not is_served("localhost", served) else "localhost"
    return f"{name}:{os.environ.get('PORT') or '8000'}".encode()
