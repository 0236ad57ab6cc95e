"""The members of a card that its signature covers (A2A 1.0 §8.4.1), and those that stay when they are empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DRAFT", "FINAL", "CardSignature", "FieldKind", "MapOf"]


@dataclass(frozen=True, slots=True)
class FieldKind:
    """A kind of object: its members, and those that stay when they are empty."""

    #: Members by name; None = data, which is not changed.
    members: Mapping[str, FieldKind | MapOf | None]
    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from any names, which all stay, to values of one kind."""

    of: FieldKind


def kind(names: str, **nested: FieldKind | MapOf) -> FieldKind:
    """Return the kind with these members; those with an exclamation mark stay if empty: required, or with presence."""
    members = {name.rstrip("!"): nested.get(name.rstrip("!")) for name in names.split()}
    return FieldKind(members, frozenset(name[:-1] for name in names.split() if name.endswith("!")))


_PROVIDER = kind("url! organization!")
_EXTENSION = kind("uri description required params")
_REQUIREMENT = kind("schemes", schemes=MapOf(kind("list")))
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
    securitySchemes=MapOf(_SCHEME),
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
    securitySchemes=MapOf(_SCHEME),
    security=_REQUIREMENT,
    skills=kind(
        "id! name! description! tags! examples inputModes outputModes security",
        security=_REQUIREMENT,
    ),
)


@dataclass(frozen=True, slots=True)
class CardSignature:
    """The signature of a dialect's card."""

    #: The members that it covers; None = all, since the dialect has no rules of presence.
    members: FieldKind | None = None
    #: True if some readers verify the loose form (`signatures/forms.py`).
    loosely: bool = False
