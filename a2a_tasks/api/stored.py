"""Stored JSON in answers: cut off by the database where it is long, so that no answer is."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Case, F, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Length
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from a2a_tasks.api.door import operator_of
from a2a_tasks.conf import conf
from a2a_tasks.protocol.files import Link, in_text
from a2a_tasks.store.file_links import linking

__all__ = ["LIMIT", "SAID", "StoredField", "document", "links", "size", "unless_long"]

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


def document(text: str, link: Link | None = None) -> Any:
    """What the text says, with URLs by `link` for files that its parts refer to; None if there is none."""
    if not text:
        return None
    try:
        return json.loads(text if link is None else in_text(text.encode(), link))
    except (ValueError, RecursionError):
        return None


def links(request: Request, agent: str) -> Link:
    """From files of an agent to URLs for the operator; as answers of the protocol have them."""
    host = str(conf.PUBLIC_URL) or request.build_absolute_uri("/")
    return linking(agent, host, operator_of(request).principal)
