"""The signed contents of a card: its members by the rules of presence (A2A 1.0 §8.4.1), as canonical JSON.

A card of 1.0 has two forms. The strict form is the specification's: required members stay, even if they are empty. The
loose form is that of the SDKs for Python and JavaScript: all empty members are omitted. Both forms are equal for a card
without empty required members.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rfc8785

from a2a_tasks.protocol.dialects import CLASSES
from a2a_tasks.protocol.dialects.signed_members import FINAL, CardSignature, FieldKind, MapOf

__all__ = ["SIGNED", "form_of", "loose", "payload", "strict"]

Card = Mapping[str, Any]


#: By form of a card: its signature.
SIGNED: Mapping[str, CardSignature] = {
    **{dialect.code: dialect.signature for dialect in CLASSES if dialect.signature},
    "hybrid": CardSignature(FINAL, loosely=True),
}


def form_of(card: Card) -> str:
    """Return the signed form of a card. A hybrid counts as a card of 1.0."""
    interfaces = card.get("supportedInterfaces")
    if not isinstance(interfaces, list):
        return "dr" if card.get("protocolVersion") == "1.0" else "v03"
    has_version = any(isinstance(one, Mapping) and "protocolVersion" in one for one in interfaces)
    of_draft = not has_version and (interfaces or "protocolVersion" in card)
    return "dr" if of_draft else "v10"


def strict(card: Card, form: str) -> dict[str, Any]:
    """Return the strict form, which omits the signatures and members that are not part of the form."""
    covered = SIGNED[form].members
    written = _write_value(card, covered) if covered else card
    return {name: value for name, value in written.items() if name != "signatures"}


def loose(card: Card, form: str) -> dict[str, Any] | None:
    """Return the loose form; None if it equals the strict form, or no reader uses it."""
    document = strict(card, form)
    filled = _drop_empty(document) or {}
    return filled if SIGNED[form].loosely and filled != document else None


def payload(document: Card) -> bytes:
    """Return canonical JSON (RFC 8785). Raises ValueError for integers beyond 2^53 and for lone surrogates."""
    try:
        return rfc8785.dumps(document)
    except rfc8785.CanonicalizationError as flaw:
        raise ValueError(f"it has no canonical form: {flaw}") from None


def _write_value(value: Any, of: FieldKind | MapOf | None) -> Any:
    if isinstance(value, list | tuple):
        return [_write_value(item, of) for item in value]
    if of is None or not isinstance(value, Mapping):
        return value
    if isinstance(of, MapOf):
        return {name: _write_value(item, of.of) for name, item in value.items()}
    found = {
        name: _write_value(value[name], nested)
        for name, nested in of.members.items()
        if value.get(name) is not None
    }
    return {name: written for name, written in found.items() if written or name in of.kept}


def _drop_empty(value: Any) -> Any:
    """Return the value without empty values at any depth; None if nothing is left."""
    if isinstance(value, Mapping):
        members = ((name, _drop_empty(item)) for name, item in value.items())
        return {name: item for name, item in members if item is not None} or None
    if isinstance(value, list):
        return [item for item in map(_drop_empty, value) if item is not None] or None
    return None if value == "" else value
