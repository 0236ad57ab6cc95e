"""Connections to Redis that are there to hear: those of this run of the tests, which share their server with others."""

from __future__ import annotations

from typing import Any

import redis
from django.conf import settings

__all__ = ["cut_off"]


def cut_off() -> None:
    """Break the connections of subscribers on this run's database. Killed by their kind alone, everybody's would be."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        own = str(client.connection_pool.connection_kwargs["db"])
        listed: list[dict[str, Any]] = client.client_list(_type="pubsub")
        for one in listed:
            if one["db"] == own:
                client.client_kill_filter(_id=one["id"])
