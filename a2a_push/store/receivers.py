"""Receivers: made when the first webhook leads there; what their breakers say, as columns."""

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
from a2a_tasks.store.backend.interface import backend

__all__ = ["policy", "read", "receiver_of", "to_columns"]

_breaker = msgspec.json.Decoder(Breaker).decode


def receiver_of(tenant: str, url: str) -> int:
    """The receiver that a tenant's webhook at this URL leads to, made if nobody has met it; in a transaction."""
    address = urlsplit(url)._replace(query="", fragment="").geturl()
    digest = hashlib.sha256(f"{tenant}\n{address}".encode()).hexdigest()
    while (
        found := _find_key(digest)
    ) is None:  # two may come at once, and retention may take it away
        row = Receiver(tenant=tenant, address=address, digest=digest)
        Receiver.objects.bulk_create([row], ignore_conflicts=True)
    return found


def _find_key(digest: str) -> int | None:
    """The key of a receiver, which stays until the transaction ends. Others may use and change it meanwhile."""
    with connection.cursor() as cursor:
        statement = f"select id from a2a_push_receiver where digest = %s{backend().key_share}"  # noqa: S608 - ours
        cursor.execute(statement, [digest])
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def policy() -> BreakerPolicy:
    """The numbers of breakers."""
    return breaker.DEFAULT.scale(float(conf.WEBHOOK_TIME_SCALE))


def read(receiver: Receiver) -> Breaker:
    """The state of its breaker."""
    return _breaker(receiver.breaker)


def to_columns(state: Breaker) -> dict[str, Any]:
    """The columns of a breaker's state."""
    closed = state.phase in (Phase.CLOSED, Phase.DISABLED)
    until = None if closed else datetime.datetime.fromtimestamp(state.until, datetime.UTC)
    return {"breaker": write(state).decode(), "probe_at": until}
