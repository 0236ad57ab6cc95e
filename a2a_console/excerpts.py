"""Excerpts of stored bodies, cut by the database: one row may hold megabytes."""

from __future__ import annotations

from django.db.models import F, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Left, Length, Right

__all__ = ["LIMIT", "select_end", "select_start", "size"]

#: The largest number of characters of one body that are read from the database and shown.
LIMIT = 10_000


def select_start(field: str) -> Combinable:
    """Select the first LIMIT characters: one row may hold megabytes."""
    return Left(F(field), LIMIT, output_field=TextField())


def select_end(field: str) -> Combinable:
    """Select the last LIMIT characters: the end of a traceback has its cause."""
    return Right(F(field), LIMIT, output_field=TextField())


def size(field: str) -> Combinable:
    """Select the length."""
    return Length(F(field))
