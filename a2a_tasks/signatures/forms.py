"""The signed contents of a card: its members by the rules of presence (A2A 1.0 §8.4.1), as canonical JSON.

A card of 1.0 has two forms. The strict form is the specification's: required members stay, even if they are empty. The
loose form is that of the SDKs for Python and JavaScript: all empty members are omitted. Both forms are equal for a card
without empty required members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rfc8785

__all__ = ["SIGNED", "FieldKind", "form_of", "loose", "payload", "strict"]

Card = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldKind:
    """A kind of object: its members, and those that stay when they are empty."""

    #: Members by name; None = data, which is not changed.
    members: Mapping[str, FieldKind | Named | None]
    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Named:
    """A map from any names, which all stay, to values of one kind."""

    of: FieldKind


def kind(names: str, **nested: FieldKind | Named) -> FieldKind:
    """Return the kind with these members; those with an exclamation mark stay if empty: required, or with presence."""
    members = {name.rstrip("!"): nested.get(name.rstrip("!")) for name in names.split()}
    return FieldKind(members, frozenset(name[:-1] for name in names.split() if name.endswith("!")))


_PROVIDER = kind("url! organization!")
_EXTENSION = kind("uri description required params")
_REQUIREMENT = kind("schemes", schemes=Named(kind("list")))
_FLOWS = kind(
    "authorizationCode! clientCredentials! implicit! password! deviceCode!",
    authorizationCode=kind("authorizationUrl! tokenUrl! refreshUrl scopes! pkceRequired"),
    clientCredentials=kind("tokenUrl! refreshUrl scopes!"),
    implicit=kind("authorizationUrl refreshUrl scopes"),
    password=kind("tokenUrl refreshUrl scopes"),
    deviceCode=kind("deviceAuthorizationUrl! tokenUrl! refreshUrl scopes!"),
)
_SCHEME = kind(
    "apiKeySecurityScheme! httpAuthSecurityScheme! oauth2SecurityScheme! openIdConnectSecurityScheme! mtlsSecurityScheme!",
    apiKeySecurityScheme=kind("description location! name!"),
    httpAuthSecurityScheme=kind("description scheme! bearerFormat"),
    oauth2SecurityScheme=kind("description flows! oauth2MetadataUrl", flows=_FLOWS),
    openIdConnectSecurityScheme=kind("description openIdConnectUrl!"),
    mtlsSecurityScheme=kind("description"),
)
_ABOUT = "name! description! provider version! documentationUrl! iconUrl! "
_MODES = "defaultInputModes! defaultOutputModes! "
#: The card of 1.0 (§4.4.1).
FINAL = kind(
    _ABOUT
    + _MODES
    + "supportedInterfaces! capabilities! securitySchemes securityRequirements skills!",
    provider=_PROVIDER,
    supportedInterfaces=kind("url! protocolBinding! tenant protocolVersion!"),
    capabilities=kind(
        "streaming! pushNotifications! extensions extendedAgentCard!", extensions=_EXTENSION
    ),
    securitySchemes=Named(_SCHEME),
    securityRequirements=_REQUIREMENT,
    skills=kind(
        "id! name! description! tags! examples inputModes outputModes securityRequirements",
        securityRequirements=_REQUIREMENT,
    ),
)
_DRAFT_INTERFACE = kind("url! protocolBinding!")
#: The card of the draft of November 2025.
DRAFT = kind(
    _ABOUT
    + _MODES
    + "protocolVersion! supportedInterfaces url! preferredTransport! additionalInterfaces capabilities! "
    "securitySchemes security skills! supportsAuthenticatedExtendedCard!",
    provider=_PROVIDER,
    supportedInterfaces=_DRAFT_INTERFACE,
    additionalInterfaces=_DRAFT_INTERFACE,
    capabilities=kind(
        "streaming! pushNotifications! extensions stateTransitionHistory!", extensions=_EXTENSION
    ),
    securitySchemes=Named(_SCHEME),
    security=_REQUIREMENT,
    skills=kind(
        "id! name! description! tags! examples inputModes outputModes security",
        security=_REQUIREMENT,
    ),
)
#: The signed members by form of a card; None = all members, since 0.3 has no rules.
SIGNED: Mapping[str, FieldKind | None] = {"v10": FINAL, "hybrid": FINAL, "dr": DRAFT, "v03": None}
#: Forms that have a loose form, too.
READ_LOOSELY = ("v10", "hybrid")


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
    of = SIGNED[form]
    written = _write_value(card, of) if of else card
    return {name: value for name, value in written.items() if name != "signatures"}


def loose(card: Card, form: str) -> dict[str, Any] | None:
    """Return the loose form; None if it equals the strict form, or no reader uses it."""
    document = strict(card, form)
    filled = _drop_empty(document) or {}
    return filled if form in READ_LOOSELY and filled != document else None


def payload(document: Card) -> bytes:
    """Return canonical JSON (RFC 8785). Raises ValueError for integers beyond 2^53 and for lone surrogates."""
    try:
        return rfc8785.dumps(document)
    except rfc8785.CanonicalizationError as flaw:
        raise ValueError(f"it has no canonical form: {flaw}") from None


def _write_value(value: Any, of: FieldKind | Named | None) -> Any:
    if isinstance(value, list | tuple):
        return [_write_value(item, of) for item in value]
    if of is None or not isinstance(value, Mapping):
        return value
    if isinstance(of, Named):
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
