"""The numbers of a stream's events over gRPC, which has no place for them outside a message: see docs/clients.md."""

from __future__ import annotations

from a2a_grpc.binding.schema import message_class
from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS

__all__ = ["EVENT_ID", "event_id", "add_number"]

#: In a subscription's metadata, the last event seen; in a stream's trailing metadata, the last event sent.
EVENT_ID = "last-event-id"


def event_id(number: int, mark: str = "") -> str:
    """Return an event id in the form of the `id:` line of a server-sent event."""
    return f"{number}-{mark}" if mark else str(number)


def add_number(item: bytes, number: str, package: str) -> bytes:
    """Return a stream's item with the number of its event in its metadata.

    Bytes appended to a message are merged into it (protobuf's encoding, "Last One Wins"), so nothing is encoded again.
    """
    made = message_class(f"{package}.StreamResponse")
    # the tag of its only field comes first
    name = made.DESCRIPTOR.fields_by_number[item[0] >> 3].name
    more = made(**{name: {"metadata": {RESUMABLE_STREAMS.uri: number}}})
    return item + more.SerializeToString()
