"""API keys: `a2a_<prefix>_<secret>`. The prefix is public and names the key; of the secret only the SHA-256 is stored.

A plain SHA-256 is sufficient because the secret has 256 random bits, which cannot be guessed: a slow hash would only
cost every caller time. (Passwords differ: people choose them.)

A key is rotated in place: it keeps its prefix, principal and tasks and gets a new secret; the old secret stays valid
for a while.
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

from a2a_tasks.access.credentials import Identity
from a2a_tasks.access.errors import refuse
from a2a_tasks.agents.security import API_KEY, is_scope
from a2a_tasks.audit import Action
from a2a_tasks.caller import Caller, is_tenant
from a2a_tasks.models import ApiKey, Grant
from a2a_tasks.rates import Rate, read_rate
from a2a_tasks.store import audit, clock
from a2a_tasks.store.db import run_in_thread

__all__ = [
    "LIFE",
    "IssuedKey",
    "describe",
    "is_tenant",
    "issue",
    "list_keys",
    "powers",
    "principal_of",
    "revoke",
    "rotate",
    "verify",
]

logger = logging.getLogger(__name__)
PATTERN = re.compile(r"a2a_([a-z2-7]{12})_([A-Za-z0-9_-]{43})")
#: Seconds between two writes of the last use of a key.
USE_SECONDS = 60.0
#: The default lifetime of a key, for the admin, the API and the command.
LIFE = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key with its plain text, which cannot be read later."""

    row: ApiKey
    key: str = field(repr=False)


def principal_of(row: ApiKey) -> str:
    """Return the principal of a key."""
    return f"key:{row.prefix}"


def powers(row: ApiKey) -> list[str]:
    """Return the scopes of a key, and its principal if that has grants.

    Only callers with all of them may rotate the key.
    """
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
) -> IssuedKey:
    """Make a key. Raises ValueError for an invalid scope, tenant or rate."""
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
    return IssuedKey(row, _key(row, secret))


def rotate(prefix: str, overlap: timedelta, expires_at: datetime | None = None) -> IssuedKey:
    """Give a key a new secret; the old secret stays valid for the overlap, and the one before it ends now.

    `expires_at` changes the end of the key. Raises ValueError for a key that is missing, revoked or expired.
    """
    with transaction.atomic():
        row = ApiKey.objects.select_for_update().filter(prefix=prefix).first()
        now = clock.now()
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
    return IssuedKey(row, _key(row, secret))


def list_keys() -> QuerySet[ApiKey]:
    """Return all keys, the revoked and expired ones too, oldest first."""
    return ApiKey.objects.order_by("pk")


def revoke(prefix: str) -> bool:
    """Revoke a key for good; False if it is revoked already, or missing.

    Caches may accept the key for another A2A_CREDENTIAL_SECONDS.
    """
    with transaction.atomic():
        row = ApiKey.objects.select_for_update().filter(prefix=prefix, revoked_at=None).first()
        if row is not None:
            row.revoked_at = clock.now()
            row.save(update_fields=["revoked_at"])
            _note(Action.KEY_REVOKE, row)
    return row is not None


@transaction.atomic
def describe(row: ApiKey) -> None:
    """Write the editable columns of a key: its name, scopes, rate and end."""
    row.save(update_fields=["name", "scopes", "rate", "expires_at"])
    _note(Action.KEY_CHANGE, row)


def _note(action: Action, row: ApiKey) -> None:
    until = row.expires_at and row.expires_at.isoformat()
    detail = {"scopes": row.scopes, "expires": until or ""}
    audit.note(action, row.prefix, tenant=row.tenant, detail=detail)


async def verify(text: str) -> Identity:
    """Return the identity of an API key, with one read of the database. Raises WrongCredentials, Overloaded."""
    found = PATTERN.fullmatch(text)
    if found is None:
        raise refuse("an API key of another form than those of this host")
    return await run_in_thread(_look_up, found[1], _digest(found[2]))


def _secret() -> str:
    return secrets.token_urlsafe(32)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: ApiKey, secret: str) -> str:
    return f"a2a_{row.prefix}_{secret}"


def _look_up(prefix: str, digest: str) -> Identity:
    row = ApiKey.objects.filter(prefix=prefix).first()
    if row is None:
        raise refuse("an unknown API key")
    now = clock.now()
    current = hmac.compare_digest(digest, row.digest)
    previous = hmac.compare_digest(digest, row.previous_digest)
    ends = [row.expires_at] if current else [row.expires_at, row.previous_until]
    if not (current or previous):
        raise refuse("an API key with a wrong secret", principal=principal_of(row))
    if row.revoked_at is not None:
        raise refuse("an API key that was revoked", principal=principal_of(row))
    if any(end <= now for end in ends if end is not None):
        raise refuse("an API key that has expired", "The API key has expired", principal_of(row))
    _note_use(row, "last_used_at" if current else "previous_used_at", now)
    caller = Caller(
        principal=principal_of(row), tenant=row.tenant, scopes=frozenset(row.scopes.split())
    )
    until = min((end.timestamp() for end in ends if end is not None), default=math.inf)
    return Identity(caller, API_KEY, until, rate=_rate(row))


def _rate(row: ApiKey) -> Rate | None:
    try:
        return read_rate(row.rate)
    except ValueError:
        raise refuse("an API key whose rate cannot be read", principal=principal_of(row)) from None


def _note_use(row: ApiKey, column: str, now: datetime) -> None:
    """Write the last use at intervals. A failure fails no request: a read-only database still lets keys be verified."""
    last: datetime | None = getattr(row, column)
    if last is not None and (now - last).total_seconds() < USE_SECONDS:
        return
    try:
        ApiKey.objects.filter(pk=row.pk).update(**{column: now})
    except DatabaseError as fault:
        logger.warning("the use of API key %s was not written: %s", row.prefix, fault)
