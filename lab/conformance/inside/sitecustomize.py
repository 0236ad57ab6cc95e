"""In the environments of kits: grpcio takes the address of a card without its scheme, as docs/clients.md tells clients."""

from __future__ import annotations

import contextlib
from typing import Any


def _without_scheme(module: Any) -> None:
    make = module.insecure_channel

    def insecure_channel(target: str, *args: Any, **others: Any) -> Any:
        return make(target.rpartition("://")[2], *args, **others)

    module.insecure_channel = insecure_channel


with contextlib.suppress(ImportError):
    import grpc.aio

    _without_scheme(grpc)
    _without_scheme(grpc.aio)
