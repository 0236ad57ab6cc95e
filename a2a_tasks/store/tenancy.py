"""Conditions for rows of tenants and of the tenants below them: `acme` includes `acme/eu`, but not `acme2` or `Acme/eu`."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import F, Q
from django.db.models.functions import Left
from django.db.models.lookups import Exact

__all__ = ["within"]


def within(tenants: Collection[str], column: str = "tenant") -> Q:
    """Return the condition for rows of these tenants, and of tenants below them; no tenant is below the empty one.

    `column` is the path from a row to its tenant. Prefixes are compared exactly: SQLite's LIKE would take `Acme/` for
    `acme/`.
    """
    found = Q(**{f"{column}__in": sorted(tenants)})
    for tenant in sorted(filter(None, tenants)):
        below = f"{tenant}/"
        found |= Q(Exact(Left(F(column), len(below)), below))
    return found
