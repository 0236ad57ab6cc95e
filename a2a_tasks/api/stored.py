"""Stored JSON in answers: cut off by the database where it is long, so that no answer is."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Case, F, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Length
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

__all__ = ["LIMIT", "SAID", "StoredField", "document", "size", "unless_long"]

#: Characters of a body that an answer holds; of longer ones it tells the size.
LIMIT = 32_768
SAID = f"As A2A 1.0 has it; null if it is longer than {LIMIT} characters."


@extend_schema_field({"type": ["object", "null"]})
class StoredField(serializers.JSONField):
    """A stored object, or null."""


def size(field: str) -> Combinable:
    """Select the length, in characters."""
    return Length(F(field))


def unless_long(field: str, length: str) -> Combinable:
    """Select the text, or nothing of a long one; `length` is what its size was selected as."""
    whole = When(**{f"{length}__lte": LIMIT}, then=F(field))
    return Case(whole, default=Value(""), output_field=TextField())


def document(text: str) -> Any:
    """What the text says; None if there is none."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
