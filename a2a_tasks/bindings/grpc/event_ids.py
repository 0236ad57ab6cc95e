"""The numbers of a stream's events over gRPC, which has no place for them beside a message: see docs/extensions.md."""

from __future__ import annotations

from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS
from a2a_tasks.bindings.grpc.schema import message_class

__all__ = ["EVENT_ID", "event_id", "numbered"]

#: In a subscription's metadata, what was seen last; in a stream's trailing metadata, what was sent last.
EVENT_ID = "last-event-id"


def event_id(number: int, mark: str = "") -> str:
    """As the `id:` line of a server-sent event has it."""
    return f"{number}-{mark}" if mark else str(number)


def numbered(item: bytes, number: str, package: str) -> bytes:
    """A stream's item with the number of its event in its metadata.

    What is appended to a message is merged into it (protobuf's encoding, "Last One Wins"), so nothing is encoded anew.
    """
    made = message_class(f"{package}.StreamResponse")
    name = made.DESCRIPTOR.fields_by_number[item[0] >> 3].name  # its one field's tag comes first
    more = made(**{name: {"metadata": {RESUMABLE_STREAMS.uri: number}}})
    return item + more.SerializeToString()
