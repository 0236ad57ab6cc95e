"""`manage.py verify_card URL|FILE`: is an agent card signed, and by whom? For any host's cards, also one's own."""

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

from a2a_tasks.outbound import Client, Guard, Limits, Policy, Unanswered
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.jsontext import read
from a2a_tasks.signatures.keys import JWKS_PATH
from a2a_tasks.signatures.verifying import ALLOWED, Unverified, headers, verify

__all__ = ["Command"]

CARD_PATH = ".well-known/agent-card.json"
#: Bytes of a card or of keys.
LARGEST = 1024 * 1024
ANY_PORT = frozenset(range(1, 65_536))
OK = 200


class Command(BaseCommand):
    """Verify one card."""

    help = (
        "Verify the signatures of an agent card. Its keys are those of --keys; without, those at the `jku` of its signatures "
        "if that is on the card's own origin, else /.well-known/jwks.json there: no other host is asked. That proves that "
        "the card is whole, and comes from who holds the origin; who that is, only keys prove that you got otherwise."
    )
    #: Nothing of this host has a say in it.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the card, and what to trust."""
        parser.add_argument("card", metavar="URL|FILE", help="of a card, or the URL of an agent")
        parser.add_argument("--keys", metavar="URL|FILE", default="", help="the JWK Set to trust")
        parser.add_argument(
            "--algorithm",
            action="append",
            choices=sorted(ALLOWED),
            help="the only one allowed; several times for several (default: all of these)",
        )
        parser.add_argument(
            "--loose",
            action="store_true",
            help="also by signatures that tell nothing of empty members, as the SDKs for Python and JavaScript do",
        )

    def handle(self, *args: Any, card: str, keys: str, **options: Any) -> None:
        """Say who vouches for it."""
        document = _object(card, _read(_card_url(card)))
        try:
            told = _object(keys, _read(keys or _keys_url(card, document))).get("keys")
            trusted = (
                [key for key in told if isinstance(key, dict)] if isinstance(told, list) else []
            )
            found = verify(
                document,
                trusted,
                now=time.time(),
                algorithms=options["algorithm"] or ALLOWED.keys(),
                loosely=options["loose"],
            )
        except Unverified as fault:
            raise CommandError("not verified: " + "; ".join(fault.reasons)) from None
        how = ", empty members left out" if found.loose else ""
        self.stdout.write(f"verified: key {found.header.kid} ({found.header.algorithm}){how}")
        unsigned = sorted(document.keys() - found.card.keys() - {"signatures"})
        if unsigned:
            self.stdout.write(f"not vouched for: {', '.join(unsigned)}")


def _is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


def _card_url(where: str) -> str:
    """Of an agent's URL that of its card."""
    whole = not _is_url(where) or _parts(where).path.endswith(".json")
    return where if whole else f"{where.rstrip('/')}/{CARD_PATH}"


def _keys_url(where: str, card: Mapping[str, Any]) -> str:
    if not _is_url(where):
        raise CommandError("of a card in a file, --keys must tell which keys are to be trusted")
    own = _origin(where)
    named = [header.jku for header in headers(card) if header.jku.startswith(f"{own}/")]
    return named[0] if named else f"{own}/{JWKS_PATH}"


def _origin(url: str) -> str:
    parts = _parts(url)
    return f"{parts.scheme}://{parts.netloc}"


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as flaw:
        raise CommandError(f"{url}: {flaw}") from None


def _read(where: str) -> bytes:
    try:
        return asyncio.run(_fetched(where)) if _is_url(where) else Path(where).read_bytes()
    except Unanswered as fault:
        raise CommandError(f"{where}: {fault}") from None
    except OSError as fault:
        raise CommandError(f"{where}: {fault.strerror}") from None


async def _fetched(url: str) -> bytes:
    """What is there. Whoever calls the command names the host, so that it may be anywhere; nothing leads on from there."""
    try:
        policy = Policy.read(http=True, loopback=True, allowed=_parts(url).hostname or "")
    except ValueError as flaw:
        raise CommandError(f"{url}: {flaw}") from None
    anywhere = dataclasses.replace(policy, ports=ANY_PORT)
    client = Client(Guard(anywhere), limits=Limits(answer=LARGEST))
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
        raise CommandError(f"{where}: that is not JSON as it should be") from None
    if not isinstance(document, dict):
        raise CommandError(f"{where}: that is not an object")
    return document
