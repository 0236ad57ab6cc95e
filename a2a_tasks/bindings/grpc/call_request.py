"""An rpc's metadata and peer, seen as the HTTP request that the other bindings have."""

from __future__ import annotations

import functools
import os
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import unquote, urlsplit

import grpc
from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access.credentials import PEER
from a2a_tasks.bindings.http import Request
from a2a_tasks.conf import conf

__all__ = ["call_request"]


def call_request(context: grpc.aio.ServicerContext[Any, Any]) -> Request:
    """The request of a call: its metadata are the headers, but for binary ones."""
    metadata = [
        (name.encode(), value.encode("latin-1", "replace"))
        for name, value in context.invocation_metadata() or ()
        if isinstance(value, str) and name != "host"
    ]
    client = peer_of(context.peer())
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
    return Request(scope, _nothing)


async def _nothing() -> MutableMapping[str, Any]:
    """A call brings its message at once."""
    return {"type": "http.request"}


@functools.cache
def _host() -> bytes:
    """Where the host answers HTTP, for what it writes into cards: metadata do not say."""
    known = urlsplit(str(conf.PUBLIC_URL)).netloc
    return (known or f"localhost:{os.environ.get('PORT') or '8000'}").encode()


@receiver(setting_changed)
def _forget(**_: Any) -> None:
    _host.cache_clear()


def peer_of(text: str) -> tuple[str, int] | None:
    """Address and port of gRPC's `ipv4:10.0.0.1:5000` or `ipv6:%5B::1%5D:5000`; None for what is neither."""
    family, _, address = text.partition(":")
    host, _, port = unquote(address).rpartition(":")
    if family not in {"ipv4", "ipv6"} or not port.isdecimal():
        return None
    return host.strip("[]").partition("%")[0], int(port)
