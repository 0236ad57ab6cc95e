"""Rows of tenants and of those below them: `acme` with `acme/eu`, neither `acme2` nor `Acme/eu`."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import F, Q
from django.db.models.functions import Left
from django.db.models.lookups import Exact

__all__ = ["within"]


def within(tenants: Collection[str], column: str = "tenant") -> Q:
    """Those rows that are of one of the tenants, or below one; nothing is below the empty one.

    `column` leads from a row to its tenant. A beginning is compared as it is: SQLite's LIKE would take `Acme/` for `acme/`.
    """
    found = Q(**{f"{column}__in": sorted(tenants)})
    for tenant in sorted(filter(None, tenants)):
        below = f"{tenant}/"
        found |= Q(Exact(Left(F(column), len(below)), below))
    return found
