"""`manage.py webhook_keys URL`: the keys with which the receiver at a URL verifies the host's notifications."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError

from a2a_push import keys
from a2a_push.keyring import audience_of

__all__ = ["Command"]


class Command(BaseCommand):
    """The command, which shows the keys of a receiver."""

    help = (
        "Show the keys with which the receiver at a URL verifies notifications: its own secrets (whsec_) and public keys "
        "(whpk_), newest first. All URLs of an origin have equal keys; but each tenant, and each webhook with an id given "
        "by its client, has keys of its own."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments: the URL, and the owner of the webhooks."""
        parser.add_argument("url")
        parser.add_argument("--tenant", default="", help="the tenant whose webhooks they are")
        parser.add_argument(
            "--config", default="", help="the id of the webhook, if its client has chosen it"
        )

    def handle(self, *args: Any, url: str, tenant: str, config: str, **options: Any) -> None:
        """Show the keys."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise CommandError(f"{url!r} is not an http or https URL")
        audience = audience_of(tenant, url, config)
        words = [audience.origin]
        words += ["--tenant", tenant] if tenant else []
        words += ["--config", audience.config] if audience.config else []
        self.stdout.write(" ".join(words))
        for key in keys.ring().verifiers(audience):
            self.stdout.write(key.text)
