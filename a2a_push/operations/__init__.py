"""The four push notification operations (A2A 1.0 §3.1.7 to §3.1.10)."""

from __future__ import annotations

from typing import NoReturn

from a2a_tasks.protocol.errors import PushNotificationNotSupported
from a2a_tasks.protocol.requests import Request

__all__ = ["not_supported"]


async def not_supported(request: Request, call: object) -> NoReturn:
    """No agent's card declares push notifications, so each of the four is refused (A2A 1.0 §3.3.4)."""
    raise PushNotificationNotSupported
