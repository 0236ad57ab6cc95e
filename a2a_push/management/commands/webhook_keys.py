"""`manage.py webhook_keys URL`: what the receiver at a URL verifies the host's notifications with."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError

from a2a_push import keys
from a2a_push.keyring import origin

__all__ = ["Command"]


class Command(BaseCommand):
    """Show the keys of a receiver."""

    help = (
        "Show what the receiver at a URL verifies notifications with: secrets (whsec_), which are for it alone, "
        "and public keys (whpk_), newest first. They are the same for every URL of its origin."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the URL."""
        parser.add_argument("url")

    def handle(self, *args: Any, url: str, **options: Any) -> None:
        """Show them."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise CommandError(f"{url!r} is not an http or https URL")
        receiver = origin(url)
        self.stdout.write(receiver)
        for key in keys.ring().verifiers(receiver):
            self.stdout.write(key.text)
