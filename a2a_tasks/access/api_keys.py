"""API keys: `a2a_<prefix>_<secret>`. The prefix is public and names the key; of the secret only the SHA-256 is kept.

A plain SHA-256 is right because the secret has 256 random bits: nobody can try them, so a slow hash would only cost
every caller time. (Passwords are another matter: people choose them.)

A key is rotated in place: it keeps prefix, principal and tasks, gets a new secret, and the old one goes on for a while.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import math
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from a2a_tasks.access.refusals import refused
from a2a_tasks.access.vouched import Vouched
from a2a_tasks.agents.security import API_KEY, is_scope
from a2a_tasks.audit import Action
from a2a_tasks.caller import Caller, is_tenant
from a2a_tasks.models import ApiKey, Grant
from a2a_tasks.rates import Rate, read_rate
from a2a_tasks.store import audit
from a2a_tasks.store.hop import hop

__all__ = [
    "LIFE",
    "Issued",
    "describe",
    "is_tenant",
    "issue",
    "listed",
    "powers",
    "principal_of",
    "revoke",
    "rotate",
    "verify",
]

logger = logging.getLogger(__name__)
PATTERN = re.compile(r"a2a_([a-z2-7]{12})_([A-Za-z0-9_-]{43})")
#: The use of a key is written at most so often.
USE_SECONDS = 60.0
#: A key's life, unless whoever makes it says otherwise: in the admin, by the API or by command.
LIFE = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Issued:
    """A key at the one moment at which it can be read."""

    row: ApiKey
    key: str = field(repr=False)


def principal_of(row: ApiKey) -> str:
    """Whom the key speaks for."""
    return f"key:{row.prefix}"


def powers(row: ApiKey) -> list[str]:
    """What a key holds: its scopes, and its own name if anything is granted to that. Who lacks one of them may not rotate it."""
    name = principal_of(row)
    named = [name] if Grant.objects.filter(grantee=name).exists() else []
    return [*row.scopes.split(), *named]


def issue(
    name: str,
    *,
    tenant: str = "",
    scopes: Iterable[str] = (),
    expires_at: datetime | None = None,
    rate: str = "",
) -> Issued:
    """Make a key. Raises ValueError for what is no scope, tenant or rate."""
    read_rate(rate)
    given = sorted(set(scopes))
    wrong = [scope for scope in given if not is_scope(scope)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} cannot be a scope")
    if not is_tenant(tenant):
        raise ValueError(f"{tenant!r} cannot be a tenant")
    secret = _secret()
    with transaction.atomic():
        row = ApiKey.objects.create(
            prefix=base64.b32encode(secrets.token_bytes(8)).decode().lower()[:12],
            name=name,
            tenant=tenant,
            scopes=" ".join(given),
            digest=_digest(secret),
            expires_at=expires_at,
            rate=rate,
        )
        _note(Action.KEY_CREATE, row)
    return Issued(row, _key(row, secret))


def rotate(prefix: str, overlap: timedelta, expires_at: datetime | None = None) -> Issued:
    """Give a key a new secret; the old one goes on for the overlap, one that was still going on ends now.

    `expires_at` moves the key's end. Raises ValueError for a key that is not there, was revoked, or has ended.
    """
    with transaction.atomic():
        row = ApiKey.objects.select_for_update().filter(prefix=prefix).first()
        now = timezone.now()
        if row is None or row.revoked_at is not None:
            raise ValueError("There is no such key, or it was revoked")
        end = expires_at or row.expires_at
        if end is not None and end <= now:
            raise ValueError("The key has expired")
        secret = _secret()
        row.previous_digest, row.digest = row.digest, _digest(secret)
        row.previous_until, row.rotated_at = now + overlap, now
        row.previous_used_at, row.expires_at = None, end
        row.save()
        _note(Action.KEY_ROTATE, row)
    return Issued(row, _key(row, secret))


def listed() -> QuerySet[ApiKey]:
    """All keys there ever were, oldest first."""
    return ApiKey.objects.order_by("pk")


def revoke(prefix: str) -> bool:
    """End a key for good; False if it had ended before, or is not there. It may open for A2A_CREDENTIAL_SECONDS yet."""
    with transaction.atomic():
        row = ApiKey.objects.select_for_update().filter(prefix=prefix, revoked_at=None).first()
        if row is not None:
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])
            _note(Action.KEY_REVOKE, row)
    return row is not None


@transaction.atomic
def describe(row: ApiKey) -> None:
    """Write what may be changed of a key: what it is for, its scopes, its rate, its end."""
    row.save(update_fields=["name", "scopes", "rate", "expires_at"])
    _note(Action.KEY_CHANGE, row)


def _note(action: Action, row: ApiKey) -> None:
    until = row.expires_at and row.expires_at.isoformat()
    detail = {"scopes": row.scopes, "expires": until or ""}
    audit.note(action, row.prefix, tenant=row.tenant, detail=detail)


async def verify(text: str) -> Vouched:
    """Who shows this key. One read of the database. Raises WrongCredentials, Overloaded."""
    found = PATTERN.fullmatch(text)
    if found is None:
        raise refused("an API key that cannot be one of ours")
    return await hop(_look_up, found[1], _digest(found[2]))


def _secret() -> str:
    return secrets.token_urlsafe(32)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: ApiKey, secret: str) -> str:
    return f"a2a_{row.prefix}_{secret}"


def _look_up(prefix: str, digest: str) -> Vouched:
    row = ApiKey.objects.filter(prefix=prefix).first()
    if row is None:
        raise refused("an API key that is not there")
    now = timezone.now()
    current = hmac.compare_digest(digest, row.digest)
    previous = hmac.compare_digest(digest, row.previous_digest)
    ends = [row.expires_at] if current else [row.expires_at, row.previous_until]
    if not (current or previous):
        raise refused("an API key with a wrong secret", whose=principal_of(row))
    if row.revoked_at is not None:
        raise refused("an API key that was revoked", whose=principal_of(row))
    if any(end <= now for end in ends if end is not None):
        raise refused("an API key that has expired", "The API key has expired", principal_of(row))
    _note_use(row, "last_used_at" if current else "previous_used_at", now)
    caller = Caller(
        principal=principal_of(row), tenant=row.tenant, scopes=frozenset(row.scopes.split())
    )
    until = min((end.timestamp() for end in ends if end is not None), default=math.inf)
    return Vouched(caller, API_KEY, until, rate=_rate(row))


def _rate(row: ApiKey) -> Rate | None:
    try:
        return read_rate(row.rate)
    except ValueError:
        raise refused("an API key whose rate cannot be read", whose=principal_of(row)) from None


def _note_use(row: ApiKey, column: str, now: datetime) -> None:
    """Lazily, and no request fails because of it: a database that takes no writes may still be read."""
    last: datetime | None = getattr(row, column)
    if last is not None and (now - last).total_seconds() < USE_SECONDS:
        return
    try:
        ApiKey.objects.filter(pk=row.pk).update(**{column: now})
    except DatabaseError as fault:
        logger.warning("the use of API key %s was not written: %s", row.prefix, fault)
