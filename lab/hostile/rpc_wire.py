"""Hostile calls over a channel, and whatever comes back."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import grpc

from lab.hostile.rpc_bending import Call

__all__ = ["Said", "called", "channel_to"]

#: Seconds an answer may take, to its end.
PATIENCE = 15.0


@dataclass(frozen=True)
class Said:
    """An answer: its messages, its status, and all metadata."""

    code: str
    message: str
    metadata: tuple[tuple[str, str | bytes], ...] = ()
    items: tuple[bytes, ...] = ()

    def of(self, key: str) -> str | bytes:
        """What stands under a key of the metadata, or nothing."""
        return dict(self.metadata).get(key, "")


def channel_to(port: int) -> grpc.Channel:
    """A channel to a port of this machine."""
    return grpc.insecure_channel(f"127.0.0.1:{port}")


def called(channel: grpc.Channel, call: Call) -> Said:
    """The answer to a call. What gRPC has is one stream each way, so that every rpc can be asked in this way."""
    begin: Any = channel.stream_stream(call.path)
    begun = begin(iter(call.messages), metadata=call.metadata, timeout=PATIENCE)
    items = []
    with contextlib.suppress(grpc.RpcError):
        items += list(begun)
    found = [*(begun.initial_metadata() or ()), *(begun.trailing_metadata() or ())]
    return Said(begun.code().name, begun.details() or "", tuple(found), tuple(items))
