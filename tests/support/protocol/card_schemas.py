"""What each dialect's card may hold and must hold, written out from its schema; nothing else is let through."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from a2a.types import AgentCard
from google.protobuf.json_format import ParseDict
from jsonschema import Draft202012Validator

__all__ = ["SCHEMAS", "check", "parsed"]

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {"type": "object"}


def closed(required: Schema, optional: Schema | None = None) -> Schema:
    """An object of these members and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def many(items: Schema) -> Schema:
    """An array."""
    return {"type": "array", "items": items}


def named(values: Schema) -> Schema:
    """A map."""
    return {"type": "object", "additionalProperties": values}


def texts(*names: str) -> Schema:
    """Members that are strings."""
    return dict.fromkeys(names, TEXT)


def flags(*names: str) -> Schema:
    """Members that are booleans."""
    return dict.fromkeys(names, FLAG)


def word(value: str) -> Schema:
    """One value only."""
    return {"const": value}


TEXTS = many(TEXT)
MODES = {"defaultInputModes": TEXTS, "defaultOutputModes": TEXTS}
SKILL_MODES = {"examples": TEXTS, "inputModes": TEXTS, "outputModes": TEXTS}
PROVIDER = closed(texts("organization", "url"))
EXTENSION = closed(texts("uri"), {**texts("description"), **flags("required"), "params": ANYTHING})
EXTENSIONS = {"extensions": many(EXTENSION)}
SIGNATURE = closed(texts("protected", "signature"), {"header": ANYTHING})

# security: OpenAPI's spelling (0.2, 0.3), and that of the wrappers (draft, 1.0)
SECURITY = many(named(TEXTS))
REQUIREMENTS = many(closed({"schemes": named(closed({"list": TEXTS}))}))
SCOPES = {"scopes": named(TEXT)}
FLOWS = {
    "authorizationCode": closed(
        {**texts("authorizationUrl", "tokenUrl"), **SCOPES}, texts("refreshUrl")
    ),
    "clientCredentials": closed({**texts("tokenUrl"), **SCOPES}, texts("refreshUrl")),
    "implicit": closed({**texts("authorizationUrl"), **SCOPES}, texts("refreshUrl")),
    "password": closed({**texts("tokenUrl"), **SCOPES}, texts("refreshUrl")),
}
FINAL_FLOWS = {
    **FLOWS,
    "authorizationCode": closed(
        {**texts("authorizationUrl", "tokenUrl"), **SCOPES},
        {**texts("refreshUrl"), **flags("pkceRequired")},
    ),
    "deviceCode": closed(
        {**texts("deviceAuthorizationUrl", "tokenUrl"), **SCOPES}, texts("refreshUrl")
    ),
}


def typed(kind: str, required: Schema, optional: Schema | None = None) -> Schema:
    """A scheme as OpenAPI has it."""
    return closed({"type": word(kind), **required}, {**texts("description"), **(optional or {})})


PLACE = {"enum": ["header", "query", "cookie"]}
OPENAPI_02 = [
    typed("apiKey", {"in": PLACE, "name": TEXT}),
    typed("http", texts("scheme"), texts("bearerFormat")),
    typed("oauth2", {"flows": closed({}, FLOWS)}),
    typed("openIdConnect", texts("openIdConnectUrl")),
]
OPENAPI_03 = [
    *(scheme for scheme in OPENAPI_02 if scheme["properties"]["type"] != word("oauth2")),
    typed("oauth2", {"flows": closed({}, FLOWS)}, texts("oauth2MetadataUrl")),
    typed("mutualTLS", {}),
]


def wrapped(flows: Schema) -> Schema:
    """A scheme in its wrapper: one of these, and of the flows one too."""
    one = {**closed({}, flows), "minProperties": 1, "maxProperties": 1}
    bodies = {
        "apiKeySecurityScheme": ({"location": PLACE, "name": TEXT}, {}),
        "httpAuthSecurityScheme": (texts("scheme"), texts("bearerFormat")),
        "oauth2SecurityScheme": ({"flows": one}, texts("oauth2MetadataUrl")),
        "openIdConnectSecurityScheme": (texts("openIdConnectUrl"), {}),
        "mtlsSecurityScheme": ({}, {}),
    }
    return {
        "oneOf": [
            closed({name: closed(required, {**texts("description"), **optional})})
            for name, (required, optional) in bodies.items()
        ]
    }


OLDEST = closed(
    {
        **texts("name", "url", "version"),
        "capabilities": closed(
            {}, flags("streaming", "pushNotifications", "stateTransitionHistory")
        ),
        "skills": many(
            closed(texts("id", "name"), {"description": TEXT, "tags": TEXTS, **SKILL_MODES})
        ),
    },
    {
        **texts("description", "documentationUrl"),
        "provider": closed(texts("organization"), texts("url")),
        "authentication": closed({"schemes": TEXTS}, texts("credentials")),
        **MODES,
    },
)

CAPABILITIES = closed(
    {}, {**flags("streaming", "pushNotifications", "stateTransitionHistory"), **EXTENSIONS}
)
V02 = closed(
    {
        **texts("name", "description", "url", "version"),
        "protocolVersion": word("0.2.6"),
        "capabilities": CAPABILITIES,
        "skills": many(closed({**texts("id", "name", "description"), "tags": TEXTS}, SKILL_MODES)),
        **MODES,
    },
    {
        **texts("preferredTransport", "documentationUrl", "iconUrl"),
        "additionalInterfaces": many(closed(texts("url", "transport"))),
        "provider": PROVIDER,
        "securitySchemes": named({"oneOf": OPENAPI_02}),
        "security": SECURITY,
        **flags("supportsAuthenticatedExtendedCard"),
    },
)
LEGACY = closed(
    {
        **{name: V02["properties"][name] for name in V02["required"]},
        "authentication": OLDEST["properties"]["authentication"],
    },
    V02["properties"],
)
SECURED_SKILL = closed(
    {**texts("id", "name", "description"), "tags": TEXTS}, {**SKILL_MODES, "security": SECURITY}
)
V03 = closed(
    {
        **texts("name", "description", "url", "version"),
        "protocolVersion": word("0.3.0"),
        "preferredTransport": TEXT,
        "capabilities": CAPABILITIES,
        "skills": many(SECURED_SKILL),
        **MODES,
    },
    {
        **texts("documentationUrl", "iconUrl"),
        "additionalInterfaces": many(closed(texts("url", "transport"))),
        "provider": PROVIDER,
        "securitySchemes": named({"oneOf": OPENAPI_03}),
        "security": SECURITY,
        **flags("supportsAuthenticatedExtendedCard"),
        "signatures": many(SIGNATURE),
    },
)
INTERFACE_OF_DRAFT = many(closed(texts("url", "protocolBinding")))
DRAFT = closed(
    {
        "protocolVersion": word("1.0"),
        **texts("name", "description", "version"),
        "capabilities": CAPABILITIES,
        "skills": many(
            closed(
                {**texts("id", "name", "description"), "tags": TEXTS},
                {**SKILL_MODES, "security": REQUIREMENTS},
            )
        ),
        **MODES,
    },
    {
        **texts("url", "preferredTransport", "documentationUrl", "iconUrl"),
        "additionalInterfaces": INTERFACE_OF_DRAFT,
        "supportedInterfaces": INTERFACE_OF_DRAFT,
        "provider": PROVIDER,
        "securitySchemes": named(wrapped(FLOWS)),
        "security": REQUIREMENTS,
        **flags("supportsAuthenticatedExtendedCard"),
        "signatures": many(SIGNATURE),
    },
)
V10 = closed(
    {
        **texts("name", "description", "version"),
        "supportedInterfaces": many(
            closed(texts("url", "protocolBinding", "protocolVersion"), texts("tenant"))
        ),
        "capabilities": closed(
            {}, {**flags("streaming", "pushNotifications", "extendedAgentCard"), **EXTENSIONS}
        ),
        "skills": many(
            closed(
                {**texts("id", "name", "description"), "tags": TEXTS},
                {**SKILL_MODES, "securityRequirements": REQUIREMENTS},
            )
        ),
        **MODES,
    },
    {
        **texts("documentationUrl", "iconUrl"),
        "provider": PROVIDER,
        "securitySchemes": named(wrapped(FINAL_FLOWS)),
        "securityRequirements": REQUIREMENTS,
        "signatures": many(SIGNATURE),
    },
)

#: By dialect; `legacy` is what `agent.json` answers where the dialect is not pinned.
SCHEMAS = {
    "s0": OLDEST,
    "v00": OLDEST,
    "v01": OLDEST,
    "v02": V02,
    "v03": V03,
    "dr": DRAFT,
    "v10": V10,
    "legacy": LEGACY,
}


@cache
def validator(form: str) -> Draft202012Validator:
    """The validator of a dialect; a schema that is none raises."""
    Draft202012Validator.check_schema(SCHEMAS[form])
    return Draft202012Validator(SCHEMAS[form])


def check(form: str, card: object) -> None:
    """Fail if this is no card of that dialect, and say where."""
    flaws = [f"{flaw.json_path}: {flaw.message}" for flaw in validator(form).iter_errors(card)]
    assert flaws == []


def parsed(card: Mapping[str, Any], *, lenient: bool = False) -> AgentCard:
    """The card as the official SDK's types read it; an unknown member raises unless lenient."""
    read = AgentCard()
    ParseDict(dict(card), read, ignore_unknown_fields=lenient)
    return read
