"""The agent card in every dialect: pure functions of the host's own card, which is that of A2A 1.0 (§4.4).

Members unknown to a dialect are left out; members that it requires are present, if need be empty. A scheme that a
dialect cannot express removes every requirement that names it: half of a requirement would promise too much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

__all__ = [
    "ABOUT",
    "MEDIA_TYPES",
    "MODES",
    "draft",
    "final",
    "hybrid",
    "legacy",
    "oldest",
    "v02",
    "v03",
]

Card = Mapping[str, Any]
Scheme = Mapping[str, Any]
Flows = Mapping[str, tuple[str, ...]]

#: By wrapper of 1.0: the `type` of OpenAPI, and the members besides the description (A2A 1.0 §4.5, 0.3 §5.5.3).
SCHEMES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "apiKeySecurityScheme": ("apiKey", ("location", "name")),
    "httpAuthSecurityScheme": ("http", ("scheme", "bearerFormat")),
    "oauth2SecurityScheme": ("oauth2", ("flows", "oauth2MetadataUrl")),
    "openIdConnectSecurityScheme": ("openIdConnect", ("openIdConnectUrl",)),
    "mtlsSecurityScheme": ("mutualTLS", ()),
}
#: Flows of OAuth 2 and their members; the device flow and PKCE came with 1.0.
FLOWS: Flows = {
    "authorizationCode": ("authorizationUrl", "tokenUrl", "refreshUrl", "scopes"),
    "clientCredentials": ("tokenUrl", "refreshUrl", "scopes"),
    "implicit": ("authorizationUrl", "refreshUrl", "scopes"),
    "password": ("tokenUrl", "refreshUrl", "scopes"),
}
FINAL_FLOWS: Flows = {
    **FLOWS,
    "authorizationCode": (*FLOWS["authorizationCode"], "pkceRequired"),
    "deviceCode": ("deviceAuthorizationUrl", "tokenUrl", "refreshUrl", "scopes"),
}
#: Members that all cards but the oldest must have, and those with default modes.
ABOUT = frozenset({"name", "description", "version", "capabilities", "skills"})
MODES = frozenset({"defaultInputModes", "defaultOutputModes"})
#: Modes were words before they were media types: clients of the first cards accept either.
WORDS = {"text/plain": "text", "application/json": "data"}
MEDIA_TYPES = {word: media_type for media_type, word in WORDS.items()}
BINDINGS = ("JSONRPC", "HTTP+JSON")
OLD = ["0", "3"]


def oldest(card: Card, url: str) -> dict[str, Any]:
    """Return the card of the seed, of April 2025 and of 0.1, which have one schema."""
    return {
        **_about(card),
        "url": url,
        **_pick(card, "documentationUrl"),
        "capabilities": {
            "streaming": False,
            "pushNotifications": False,
            "stateTransitionHistory": False,
            **_pick(_object(card, "capabilities"), "streaming", "pushNotifications"),
        },
        "authentication": {"schemes": _http_schemes(card)},
        "defaultInputModes": _translate_modes(_list(card, "defaultInputModes")),
        "defaultOutputModes": _translate_modes(_list(card, "defaultOutputModes")),
        "skills": [_translate_skill(skill) for skill in _older_skills(card)],
    }


def v02(card: Card, url: str) -> dict[str, Any]:
    """Return the card of 0.2.6, with all members that 0.2 ever had."""
    schemes = {
        name: {key: value for key, value in scheme.items() if key != "oauth2MetadataUrl"}
        for name, scheme in _schemes(card, _write_scheme).items()
        if scheme["type"] != "mutualTLS"
    }
    return _flat(card, url, "0.2.6", schemes)


def v03(card: Card, url: str) -> dict[str, Any]:
    """Return the card of 0.3.0 (0.3 §5.5)."""
    schemes = _schemes(card, _write_scheme)
    skills = [
        {**skill, **_drop_empty(security=_alternatives(own, schemes))}
        for skill, own in zip(_older_skills(card), _list(card, "skills"), strict=True)
    ]
    return {**_flat(card, url, "0.3.0", schemes), "skills": skills}


def draft(card: Card, url: str) -> dict[str, Any]:
    """Return the card of the draft of November 2025: its own members, and those it had just deprecated."""
    schemes = _schemes(card, lambda scheme: _wrap_scheme(scheme, FLOWS))
    interfaces = [{"url": url, "protocolBinding": binding} for binding in BINDINGS]
    interfaces += [
        _pick(interface, "url", "protocolBinding")  # its proto package is that of 0.3
        for interface in _list(card, "supportedInterfaces")
        if interface["protocolBinding"] == "GRPC" and _minor(interface["protocolVersion"]) == OLD
    ]
    return {
        "protocolVersion": "1.0",
        **_about(card),
        "supportedInterfaces": interfaces,
        "url": url,
        "preferredTransport": BINDINGS[0],
        "additionalInterfaces": interfaces,
        **_pick(card, "documentationUrl", "iconUrl"),
        "capabilities": _capabilities(card),
        **_drop_empty(
            securitySchemes=schemes, security=_write_requirements(_alternatives(card, schemes))
        ),
        **_modes(card),
        "skills": [
            {
                **_skill(skill),
                **_drop_empty(security=_write_requirements(_alternatives(skill, schemes))),
            }
            for skill in _list(card, "skills")
        ],
        **_write_extended(card),
    }


def final(card: Card) -> dict[str, Any]:
    """Return the card of 1.0 (§4.4.1), without members of other versions."""
    schemes = _schemes(card, lambda scheme: _wrap_scheme(scheme, FINAL_FLOWS))
    capabilities = _object(card, "capabilities")
    return {
        **_about(card),
        "supportedInterfaces": [
            _pick(interface, "url", "protocolBinding", "tenant", "protocolVersion")
            for interface in _list(card, "supportedInterfaces")
        ],
        **_pick(card, "documentationUrl"),
        "capabilities": {**_capabilities(card), **_pick(capabilities, "extendedAgentCard")},
        **_drop_empty(securitySchemes=schemes, securityRequirements=_requirements(card)),
        **_modes(card),
        "skills": [
            {**_skill(skill), **_drop_empty(securityRequirements=_requirements(skill))}
            for skill in _list(card, "skills")
        ],
        **_pick(card, "signatures", "iconUrl"),
    }


def hybrid(card: Card, url_of_03: str) -> dict[str, Any]:
    """Return the card of 1.0 with the members of 0.3 added, and each scheme in both spellings."""
    new, old = final(card), v03(card, url_of_03)
    skills = zip(old["skills"], new["skills"], strict=True)
    return {
        **old,
        **new,
        **_drop_empty(
            securitySchemes={
                name: {**scheme, **_write_scheme(scheme, FINAL_FLOWS)}
                for name, scheme in new.get("securitySchemes", {}).items()
            }
        ),
        "skills": [{**of_old, **of_new} for of_old, of_new in skills],
    }


def legacy(card: Card, url: str) -> dict[str, Any]:
    """Return the card at `agent.json`: that of 0.2, with the members that readers of 0.0 and 0.1 need."""
    return {**v02(card, url), "authentication": {"schemes": _http_schemes(card)}}


def _flat(card: Card, url: str, version: str, schemes: Mapping[str, Scheme]) -> dict[str, Any]:
    """Return the members that the cards of 0.2 and 0.3 share."""
    return {
        "protocolVersion": version,
        **_about(card),
        **_transports(card, url, version),
        **_pick(card, "documentationUrl", "iconUrl"),
        "capabilities": _capabilities(card),
        **_drop_empty(securitySchemes=schemes, security=_alternatives(card, schemes)),
        **_modes(card),
        "skills": _older_skills(card),
        **_write_extended(card),
    }


def _transports(card: Card, url: str, version: str) -> dict[str, Any]:
    """Return the main URL, its transport, and every interface of this version (0.3 §5.6: including the main one)."""
    found = [
        (str(interface["url"]), str(interface["protocolBinding"]))
        for interface in _list(card, "supportedInterfaces")
        if _minor(interface["protocolVersion"]) == _minor(version) and not interface.get("tenant")
    ] or [(url, binding) for binding in BINDINGS]
    preferred = next((binding for at, binding in found if at == url), BINDINGS[0])
    ways = dict.fromkeys([(url, preferred), *found])
    return {
        "url": url,
        "preferredTransport": preferred,
        "additionalInterfaces": [{"url": at, "transport": binding} for at, binding in ways],
    }


def _minor(version: str) -> list[str]:
    """Return the major and minor number: the patch number has no meaning (A2A 1.0 §3.6)."""
    return version.split(".")[:2]


def _about(card: Card) -> dict[str, Any]:
    about = {name: card.get(name) or "" for name in ("name", "description", "version")}
    provider = card.get("provider")
    if provider:
        about["provider"] = {key: provider.get(key) or "" for key in ("organization", "url")}
    return about


def _modes(card: Card) -> dict[str, list[str]]:
    return {name: _list(card, name) for name in ("defaultInputModes", "defaultOutputModes")}


def _capabilities(card: Card) -> dict[str, Any]:
    capabilities = _object(card, "capabilities")
    extensions = [
        _pick(extension, "uri", "description", "required", "params")
        for extension in _list(capabilities, "extensions")
    ]
    return {
        **_pick(capabilities, "streaming", "pushNotifications"),
        **_drop_empty(extensions=extensions),
    }


def _write_extended(card: Card) -> dict[str, bool]:
    extended = _object(card, "capabilities").get("extendedAgentCard")
    return {"supportsAuthenticatedExtendedCard": True} if extended else {}


def _skill(skill: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: skill.get(name) or "" for name in ("id", "name", "description")},
        "tags": _list(skill, "tags"),
        **_pick(skill, "examples", "inputModes", "outputModes"),
    }


def _older_skills(card: Card) -> list[dict[str, Any]]:
    """Return the skills, each with its modes, which some readers of 0.2 and 0.3 require."""
    defaults = {
        "inputModes": _list(card, "defaultInputModes"),
        "outputModes": _list(card, "defaultOutputModes"),
    }
    return [{**defaults, **_skill(skill)} for skill in _list(card, "skills")]


def _translate_skill(skill: dict[str, Any]) -> dict[str, Any]:
    return {
        **skill,
        **{name: _translate_modes(skill[name]) for name in ("inputModes", "outputModes")},
    }


def _translate_modes(modes: Iterable[str]) -> list[str]:
    """Return each mode, preceded by its old word, if it had one."""
    both = (mode for media in modes for mode in (WORDS.get(media, media), media))
    return list(dict.fromkeys(both))


def _schemes(card: Card, spelled: Callable[[Scheme], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the schemes that the dialect can express, by name."""
    named = _object(card, "securitySchemes")
    return {name: written for name, scheme in named.items() if (written := spelled(scheme))}


def _wrap_scheme(scheme: Scheme, flows: Flows) -> dict[str, Any]:
    """Return a scheme in the form of 1.0; empty if it has none of these flows."""
    for wrapper, (_, members) in SCHEMES.items():
        if wrapper in scheme:
            written = _pick(scheme[wrapper], "description", *members)
            if "flows" in members:
                written["flows"] = _flows(_object(written, "flows"), flows)
            return {wrapper: written} if written.get("flows") != {} else {}
    return {}


def _write_scheme(scheme: Scheme, flows: Flows = FLOWS) -> dict[str, Any]:
    """Return a scheme in the form of OpenAPI; empty if it has none of these flows."""
    for wrapper, members in _wrap_scheme(scheme, flows).items():
        if "location" in members:
            members["in"] = members.pop("location")
        return {"type": SCHEMES[wrapper][0], **members}
    return {}


def _flows(written: Mapping[str, Any], defined: Flows) -> dict[str, Any]:
    return {
        name: {"scopes": {}, **_pick(flow, *defined[name])}
        for name, flow in written.items()
        if name in defined
    }


def _alternatives(of: Mapping[str, Any], schemes: Collection[str]) -> list[dict[str, list[str]]]:
    """Return requirements in the form of OpenAPI: alternatives, each with all its schemes."""
    spelled = [
        {name: _list(scopes, "list") for name, scopes in _object(one, "schemes").items()}
        for one in _list(of, "securityRequirements")
    ]
    return [one for one in spelled if all(name in schemes for name in one)]


def _write_requirements(alternatives: list[dict[str, list[str]]]) -> list[dict[str, Any]]:
    """Return requirements in the form of the draft and 1.0."""
    return [
        {"schemes": {name: {"list": scopes} for name, scopes in one.items()}}
        for one in alternatives
    ]


def _requirements(of: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all requirements, also those that name a scheme the card does not declare."""
    named = [name for one in _list(of, "securityRequirements") for name in _object(one, "schemes")]
    return _write_requirements(_alternatives(of, named))


def _http_schemes(card: Card) -> list[str]:
    """Return the required schemes as they precede the credentials in the header Authorization.

    If none of them uses that header, return the names of their types: an empty list would mean that nothing is
    required.
    """
    schemes = _object(card, "securitySchemes")
    names = [name for one in _requirements(card) for name in one["schemes"]]
    written = [
        scheme for name in names if (scheme := _write_scheme(schemes.get(name, {}), FINAL_FLOWS))
    ]
    found = [
        scheme["scheme"] if scheme["type"] == "http" else "Bearer"
        for scheme in written
        if scheme["type"] in {"http", "oauth2", "openIdConnect"}
    ]
    return list(dict.fromkeys(found or [scheme["type"] for scheme in written]))


def _pick(of: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the members of these names that exist."""
    return {name: of[name] for name in names if of.get(name) is not None}


def _drop_empty(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


def _list(of: Mapping[str, Any], name: str) -> list[Any]:
    return list(of.get(name) or ())


def _object(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(of.get(name) or {})
