"""Receivers: created with the first webhook of an address; the columns for the states of their breakers."""

from __future__ import annotations

import datetime
import hashlib
from typing import Any
from urllib.parse import urlsplit

import msgspec
from django.db import connection

from a2a_push import breaker
from a2a_push.breaker import Breaker, BreakerPolicy, Phase
from a2a_push.models import Receiver
from a2a_tasks.conf import conf
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.store.backend.server import is_server

__all__ = ["policy", "read", "receiver_of", "to_columns"]

FIND, HOLD = "select id from a2a_push_receiver where digest = %s", " for key share"
_breaker = msgspec.json.Decoder(Breaker).decode


def receiver_of(tenant: str, url: str) -> int:
    """Return the key of the receiver of a tenant's webhook at this URL, created if necessary. Call it in a transaction."""
    address = urlsplit(url)._replace(query="", fragment="").geturl()
    digest = hashlib.sha256(f"{tenant}\n{address}".encode()).hexdigest()
    # Another transaction may create it at once, and retention may delete it.
    while (found := _find_key(digest)) is None:
        row = Receiver(tenant=tenant, address=address, digest=digest)
        Receiver.objects.bulk_create([row], ignore_conflicts=True)
    return found


def _find_key(digest: str) -> int | None:
    """Return the key of a receiver, protected from deletion until the transaction ends, but not from changes."""
    with connection.cursor() as cursor:
        cursor.execute(FIND + HOLD if is_server() else FIND, [digest])
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def policy() -> BreakerPolicy:
    """Return the thresholds of breakers."""
    return breaker.DEFAULT.scale(float(conf.WEBHOOK_TIME_SCALE))


def read(receiver: Receiver) -> Breaker:
    """Return the state of the receiver's breaker."""
    return _breaker(receiver.breaker)


def to_columns(state: Breaker) -> dict[str, Any]:
    """Return the columns for a breaker's state."""
    closed = state.phase in (Phase.CLOSED, Phase.DISABLED)
    until = None if closed else datetime.datetime.fromtimestamp(state.until, datetime.UTC)
    return {"breaker": write(state).decode(), "probe_at": until}
