"""`manage.py verify_card URL|FILE`: verify the signatures of an agent card, of any host or of this one."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.outbound import Client, ClientLimits, Guard, OutboundPolicy, Unanswered
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.jsontext import read
from a2a_tasks.signatures.keys import JWKS_PATH
from a2a_tasks.signatures.verification import ALLOWED, CardUnverified, headers, verify

__all__ = ["Command"]

CARD_PATH = ".well-known/agent-card.json"
#: Maximum size of a card or of keys, in bytes.
LARGEST = 1024 * 1024
ANY_PORT = frozenset(range(1, 65_536))
OK = 200


class Command(BaseCommand):
    """The command: it verifies one card."""

    help = (
        "Verify the signatures of an agent card with the keys of --keys. Without --keys, the keys are taken from the `jku` of "
        "the signatures if that is on the card's own origin, else from /.well-known/jwks.json there; no other host is asked. "
        "This proves that the card is unchanged and comes from its origin. To prove who owns the origin, pass trusted keys."
    )
    #: The command depends on nothing of this host.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments: the card, and the trusted keys."""
        parser.add_argument("card", metavar="URL|FILE", help="a card, or the URL of an agent")
        parser.add_argument("--keys", metavar="URL|FILE", default="", help="the JWK Set to trust")
        parser.add_argument(
            "--algorithm",
            action="append",
            choices=sorted(ALLOWED),
            help="an allowed algorithm; may be repeated (default: all of these)",
        )
        parser.add_argument(
            "--loose",
            action="store_true",
            help="also accept signatures that do not cover empty members, as the SDKs for Python and JavaScript do",
        )

    def handle(self, *args: Any, card: str, keys: str, **options: Any) -> None:
        """Verify the card and print the key that signed it."""
        document = _object(card, _read(_card_url(card)))
        try:
            found = _object(keys, _read(keys or _keys_url(card, document))).get("keys")
            trusted = (
                [key for key in found if isinstance(key, dict)] if isinstance(found, list) else []
            )
            found = verify(
                document,
                trusted,
                now=time.time(),
                algorithms=options["algorithm"] or ALLOWED.keys(),
                loosely=options["loose"],
            )
        except CardUnverified as fault:
            raise CommandError("not verified: " + "; ".join(fault.reasons)) from None
        how = ", empty members left out" if found.loose else ""
        self.stdout.write(f"verified: key {found.header.kid} ({found.header.algorithm}){how}")
        unsigned = sorted(document.keys() - found.card.keys() - {"signatures"})
        if unsigned:
            self.stdout.write(f"not covered by the signature: {', '.join(unsigned)}")


def _is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


def _card_url(where: str) -> str:
    """Return the card's URL for an agent's URL."""
    whole = not _is_url(where) or _parts(where).path.endswith(".json")
    return where if whole else f"{where.rstrip('/')}/{CARD_PATH}"


def _keys_url(where: str, card: Mapping[str, Any]) -> str:
    if not _is_url(where):
        raise CommandError("for a card in a file, --keys must name the trusted keys")
    own = f"{_parts(where).scheme}://{_parts(where).netloc}"
    named = [header.jku for header in headers(card) if header.jku.startswith(f"{own}/")]
    return named[0] if named else f"{own}/{JWKS_PATH}"


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as flaw:
        raise CommandError(f"{url}: {flaw}") from None


def _read(where: str) -> bytes:
    try:
        return asyncio.run(_download(where)) if _is_url(where) else Path(where).read_bytes()
    except Unanswered as fault:
        raise CommandError(f"{where}: {fault}") from None
    except OSError as fault:
        raise CommandError(f"{where}: {fault.strerror}") from None


async def _download(url: str) -> bytes:
    """Download a card or keys. The operator names the host, so any address is allowed; redirects are not followed."""
    try:
        policy = OutboundPolicy.read(http=True, loopback=True, allowed=_parts(url).hostname or "")
    except ValueError as flaw:
        raise CommandError(f"{url}: {flaw}") from None
    anywhere = dataclasses.replace(policy, ports=ANY_PORT)
    client = Client(Guard(anywhere), limits=ClientLimits(answer=LARGEST))
    try:
        answer = await client.ask("GET", url, [("Accept", "application/json")])
    finally:
        await client.close()
    if answer.status != OK or not answer.whole:
        raise CommandError(
            f"{url}: answered {answer.status}" + ("" if answer.whole else ", not whole")
        )
    return answer.body


def _object(where: str, text: bytes) -> dict[str, Any]:
    try:
        document = read(text)
    except A2AError:
        raise CommandError(f"{where}: it is not valid JSON") from None
    if not isinstance(document, dict):
        raise CommandError(f"{where}: it is not an object")
    return document
