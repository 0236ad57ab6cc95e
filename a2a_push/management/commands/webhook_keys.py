"""`manage.py webhook_keys URL`: what the receiver at a URL verifies the host's notifications with."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError

from a2a_push import keys
from a2a_push.keyring import audience_of

__all__ = ["Command"]


class Command(BaseCommand):
    """Show the keys of a receiver."""

    help = (
        "Show what the receiver at a URL verifies notifications with: secrets (whsec_), which are for it alone, "
        "and public keys (whpk_), newest first. They are the same for every URL of its origin, and others for every "
        "tenant, and for webhooks whose clients give them a name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the URL, and whose webhooks they are."""
        parser.add_argument("url")
        parser.add_argument("--tenant", default="", help="the tenant whose webhooks they are")
        parser.add_argument("--config", default="", help="the id that its clients give the webhook")

    def handle(self, *args: Any, url: str, tenant: str, config: str, **options: Any) -> None:
        """Show them."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise CommandError(f"{url!r} is not an http or https URL")
        audience = audience_of(tenant, url, config)
        said = [audience.origin]
        said += ["--tenant", tenant] if tenant else []
        said += ["--config", audience.config] if audience.config else []
        self.stdout.write(" ".join(said))
        for key in keys.ring().verifiers(audience):
            self.stdout.write(key.text)
