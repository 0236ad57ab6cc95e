"""Does anybody follow at all? What this process knows of it, so that a host without webhooks asks nothing on their account."""

from __future__ import annotations

from django.db import transaction

from a2a_push.models import PushConfig

__all__ = ["PusherPresence", "anybody", "note_one_more"]


class PusherPresence:
    """Counts the webhooks that this process has given something to follow, new ones and old ones."""

    count = 0

    @classmethod
    def one_more(cls) -> None:
        """There is one."""
        cls.count += 1


def note_one_more() -> None:
    """A webhook has become active; counted once the transaction is committed."""
    transaction.on_commit(PusherPresence.one_more)


def anybody() -> bool:
    """Is any webhook active?"""
    return PushConfig.objects.filter(active=True).exists()
