"""Stored JSON in answers. The database leaves out long texts, so that no answer is too long."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from django.db.models import Case, F, Model, QuerySet, TextField, Value, When
from django.db.models.functions import Coalesce, Length
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from a2a_console.api.operators import get_operator
from a2a_tasks.conf import base_url
from a2a_tasks.protocol.files import Link, in_text
from a2a_tasks.store import file_links

__all__ = ["AS_STORED", "LIMIT", "StoredField", "make_linker", "parse_stored", "select_stored"]

_M = TypeVar("_M", bound=Model)
#: The largest body in characters in an answer; of longer ones the answer has only the size.
LIMIT = 32_768
AS_STORED = f"As A2A 1.0 has it; null if it is longer than {LIMIT} characters."


@extend_schema_field({"type": ["object", "null"]})
class StoredField(serializers.JSONField):
    """A stored JSON text as an object, or null. Files become links if the context of the serializer has a `link`."""

    def to_representation(self, value: Any) -> Any:
        """Return the object."""
        return parse_stored(value, self.context.get("link"))


def select_stored(rows: QuerySet[_M], field: str = "body") -> QuerySet[_M]:
    """Add the `length` of a stored text, in characters, and the `text`, which is empty if it is too long."""
    whole = When(length__lte=LIMIT, then=F(field))
    measured: Any = rows.annotate(length=Coalesce(Length(field), 0))
    stored: QuerySet[_M] = measured.annotate(
        text=Case(whole, default=Value(""), output_field=TextField())
    )
    return stored


def parse_stored(text: str, link: Link | None = None) -> Any:
    """Return the object in a stored JSON text, with URLs by `link` for files in its parts; None if it is empty."""
    if not text:
        return None
    try:
        return json.loads(text if link is None else in_text(text.encode(), link))
    except (ValueError, RecursionError):
        return None


def make_linker(request: Request, agent: str) -> Link:
    """Return a function that makes URLs of an agent's files for the operator, like those in answers of the protocol."""
    host = base_url(request.build_absolute_uri("/"))
    return file_links.make_linker(agent, host, get_operator(request).principal)
