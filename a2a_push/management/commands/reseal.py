"""`manage.py reseal`: seal every stored secret with the newest key, so that older keys can be removed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.store import sealed_columns

__all__ = ["Command"]


class Command(BaseCommand):
    """The command: it seals secrets with the newest key."""

    help = "Seal every stored secret with the newest of A2A_SECRET_KEYS. Then older keys can be removed."

    def handle(self, *args: Any, **options: Any) -> None:
        """Reseal the secrets, and print the counts."""
        counts = [sealed_columns.reseal(column) for column in sealed_columns.columns()]
        done, unreadable = map(sum, zip(*counts, strict=True))
        self.stdout.write(f"{done} sealed with the newest key")
        if unreadable:
            raise CommandError(
                f"{unreadable} are opened by no key; perhaps one was removed too early"
            )
