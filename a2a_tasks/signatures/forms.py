"""What a signature of a card vouches for: its members by the rules of presence (A2A 1.0 §8.4.1), as canonical JSON.

There are two forms of a card of 1.0. The strict one is the specification's: what is required stays, though it be empty.
The loose one is that of the SDKs for Python and JavaScript: whatever is empty goes. They differ where something is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rfc8785

__all__ = ["SIGNED", "Kind", "form_of", "loose", "payload", "strict"]

Card = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: the members it has, and those that stay when they are empty."""

    #: None = data, which is left as it is.
    members: Mapping[str, Kind | Named | None]
    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Named:
    """A map: names are data and stay, values are of a kind."""

    of: Kind


def kind(names: str, **nested: Kind | Named) -> Kind:
    """Of members' names; one with an exclamation mark stays though it is empty: required, or told to be there."""
    members = {name.rstrip("!"): nested.get(name.rstrip("!")) for name in names.split()}
    return Kind(members, frozenset(name[:-1] for name in names.split() if name.endswith("!")))


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
#: By form of a card: what of it is signed; None = all of it, for want of rules (0.3 has none).
SIGNED: Mapping[str, Kind | None] = {"v10": FINAL, "hybrid": FINAL, "dr": DRAFT, "v03": None}
#: Forms that are read by those who leave out what is empty.
READ_LOOSELY = ("v10", "hybrid")


def form_of(card: Card) -> str:
    """Which of the signed forms a card has. A hybrid is read as what it is of 1.0."""
    interfaces = card.get("supportedInterfaces")
    if not isinstance(interfaces, list):
        return "dr" if card.get("protocolVersion") == "1.0" else "v03"
    told = any(isinstance(one, Mapping) and "protocolVersion" in one for one in interfaces)
    of_draft = not told and (interfaces or "protocolVersion" in card)
    return "dr" if of_draft else "v10"


def strict(card: Card, form: str) -> dict[str, Any]:
    """What a signature by the specification vouches for: not the signatures, nor members that the form has not."""
    of = SIGNED[form]
    shown = _shown(card, of) if of else card
    return {name: value for name, value in shown.items() if name != "signatures"}


def loose(card: Card, form: str) -> dict[str, Any] | None:
    """The same without anything empty; None if that is the strict form already, or nobody reads it so."""
    document = strict(card, form)
    filled = _filled(document) or {}
    return filled if form in READ_LOOSELY and filled != document else None


def payload(document: Card) -> bytes:
    """Canonical JSON (RFC 8785). Raises ValueError for what has none: integers beyond 2^53, half of a surrogate pair."""
    try:
        return rfc8785.dumps(document)
    except rfc8785.CanonicalizationError as flaw:
        raise ValueError(f"it has no canonical form: {flaw}") from None


def _shown(value: Any, of: Kind | Named | None) -> Any:
    if isinstance(value, list | tuple):
        return [_shown(item, of) for item in value]
    if of is None or not isinstance(value, Mapping):
        return value
    if isinstance(of, Named):
        return {name: _shown(item, of.of) for name, item in value.items()}
    found = {
        name: _shown(value[name], nested)
        for name, nested in of.members.items()
        if value.get(name) is not None
    }
    return {name: shown for name, shown in found.items() if shown or name in of.kept}


def _filled(value: Any) -> Any:
    """The value without what is empty, to its depth; None if nothing is left."""
    if isinstance(value, Mapping):
        members = ((name, _filled(item)) for name, item in value.items())
        return {name: item for name, item in members if item is not None} or None
    if isinstance(value, list):
        return [item for item in map(_filled, value) if item is not None] or None
    return None if value == "" else value
