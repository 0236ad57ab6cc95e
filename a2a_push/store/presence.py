"""The presence of active webhooks, so that a host without webhooks does not search for due ones."""

from __future__ import annotations

from django.db import transaction

from a2a_push.models import PushConfig

__all__ = ["PusherPresence", "is_any_active", "note_one_more"]


class PusherPresence:
    """The number of times that this process has activated a webhook."""

    count = 0

    @classmethod
    def one_more(cls) -> None:
        """Count one more."""
        cls.count += 1


def note_one_more() -> None:
    """Count a webhook that has become active, after the commit of the transaction."""
    transaction.on_commit(PusherPresence.one_more)


def is_any_active() -> bool:
    """Return whether any webhook is active."""
    return PushConfig.objects.filter(active=True).exists()
