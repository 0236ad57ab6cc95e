"""The agent card in every dialect: pure functions of the host's own card, which is that of A2A 1.0 (§4.4).

What a dialect has no member for is left out, what it requires is there, if need be empty. A scheme it cannot tell
takes with it every requirement that names it: half of a requirement would promise too much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

__all__ = ["MEDIA_TYPES", "draft", "final", "hybrid", "legacy", "oldest", "v02", "v03"]

Card = Mapping[str, Any]
Scheme = Mapping[str, Any]
Flows = Mapping[str, tuple[str, ...]]

#: By wrapper of 1.0: the `type` of OpenAPI, and the members beside the description (A2A 1.0 §4.5, 0.3 §5.5.3).
SCHEMES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "apiKeySecurityScheme": ("apiKey", ("location", "name")),
    "httpAuthSecurityScheme": ("http", ("scheme", "bearerFormat")),
    "oauth2SecurityScheme": ("oauth2", ("flows", "oauth2MetadataUrl")),
    "openIdConnectSecurityScheme": ("openIdConnect", ("openIdConnectUrl",)),
    "mtlsSecurityScheme": ("mutualTLS", ()),
}
#: Flows of OAuth 2 and their members; the device's flow and PKCE came with 1.0.
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
#: Modes were words before they were media types: clients of the first cards look for either.
WORDS = {"text/plain": "text", "application/json": "data"}
MEDIA_TYPES = {word: media_type for media_type, word in WORDS.items()}
BINDINGS = ("JSONRPC", "HTTP+JSON")
OLD = ["0", "3"]


def oldest(card: Card, url: str) -> dict[str, Any]:
    """The card of the seed, of April 2025 and of 0.1: one schema for the three."""
    return {
        **_about(card),
        "url": url,
        **_kept(card, "documentationUrl"),
        "capabilities": {
            "streaming": False,
            "pushNotifications": False,
            "stateTransitionHistory": False,
            **_kept(_object(card, "capabilities"), "streaming", "pushNotifications"),
        },
        "authentication": {"schemes": _http_schemes(card)},
        "defaultInputModes": _worded(_list(card, "defaultInputModes")),
        "defaultOutputModes": _worded(_list(card, "defaultOutputModes")),
        "skills": [_worded_skill(skill) for skill in _older_skills(card)],
    }


def v02(card: Card, url: str) -> dict[str, Any]:
    """The card of 0.2.6: all that 0.2 ever had."""
    schemes = {
        name: {key: value for key, value in scheme.items() if key != "oauth2MetadataUrl"}
        for name, scheme in _schemes(card, _typed).items()
        if scheme["type"] != "mutualTLS"
    }
    return _flat(card, url, "0.2.6", schemes)


def v03(card: Card, url: str) -> dict[str, Any]:
    """The card of 0.3.0 (0.3 §5.5)."""
    schemes = _schemes(card, _typed)
    skills = [
        {**skill, **_filled(security=_alternatives(own, schemes))}
        for skill, own in zip(_older_skills(card), _list(card, "skills"), strict=True)
    ]
    return {**_flat(card, url, "0.3.0", schemes), "skills": skills}


def draft(card: Card, url: str) -> dict[str, Any]:
    """The card of the draft of November 2025: its own members, and those it had just deprecated."""
    schemes = _schemes(card, lambda scheme: _wrapped(scheme, FLOWS))
    interfaces = [{"url": url, "protocolBinding": binding} for binding in BINDINGS]
    interfaces += [
        _kept(interface, "url", "protocolBinding")  # its proto package is that of 0.3
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
        **_kept(card, "documentationUrl", "iconUrl"),
        "capabilities": _capabilities(card),
        **_filled(securitySchemes=schemes, security=_required(_alternatives(card, schemes))),
        **_modes(card),
        "skills": [
            {**_skill(skill), **_filled(security=_required(_alternatives(skill, schemes)))}
            for skill in _list(card, "skills")
        ],
        **_extended(card),
    }


def final(card: Card) -> dict[str, Any]:
    """The card of 1.0 (§4.4.1), with no member that is not in it."""
    schemes = _schemes(card, lambda scheme: _wrapped(scheme, FINAL_FLOWS))
    capabilities = _object(card, "capabilities")
    return {
        **_about(card),
        "supportedInterfaces": [
            _kept(interface, "url", "protocolBinding", "tenant", "protocolVersion")
            for interface in _list(card, "supportedInterfaces")
        ],
        **_kept(card, "documentationUrl"),
        "capabilities": {**_capabilities(card), **_kept(capabilities, "extendedAgentCard")},
        **_filled(securitySchemes=schemes, securityRequirements=_requirements(card)),
        **_modes(card),
        "skills": [
            {**_skill(skill), **_filled(securityRequirements=_requirements(skill))}
            for skill in _list(card, "skills")
        ],
        **_kept(card, "signatures", "iconUrl"),
    }


def hybrid(card: Card, url_of_03: str) -> dict[str, Any]:
    """The card of 1.0 with the members of 0.3 beside its own, and each scheme in both spellings."""
    new, old = final(card), v03(card, url_of_03)
    skills = zip(old["skills"], new["skills"], strict=True)
    return {
        **old,
        **new,
        **_filled(
            securitySchemes={
                name: {**scheme, **_typed(scheme, FINAL_FLOWS)}
                for name, scheme in new.get("securitySchemes", {}).items()
            }
        ),
        "skills": [{**of_old, **of_new} for of_old, of_new in skills],
    }


def legacy(card: Card, url: str) -> dict[str, Any]:
    """The card at `agent.json`: that of 0.2, with what readers of 0.0 and 0.1 look for."""
    return {**v02(card, url), "authentication": {"schemes": _http_schemes(card)}}


def _flat(card: Card, url: str, version: str, schemes: Mapping[str, Scheme]) -> dict[str, Any]:
    """What the cards of 0.2 and 0.3 share."""
    return {
        "protocolVersion": version,
        **_about(card),
        **_transports(card, url, version),
        **_kept(card, "documentationUrl", "iconUrl"),
        "capabilities": _capabilities(card),
        **_filled(securitySchemes=schemes, security=_alternatives(card, schemes)),
        **_modes(card),
        "skills": _older_skills(card),
        **_extended(card),
    }


def _transports(card: Card, url: str, version: str) -> dict[str, Any]:
    """The main URL, its transport, and every way in of this version (0.3 §5.6: the main one too)."""
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
    """Major and minor number: the patch number means nothing (A2A 1.0 §3.6)."""
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
    said = _object(card, "capabilities")
    extensions = [
        _kept(extension, "uri", "description", "required", "params")
        for extension in _list(said, "extensions")
    ]
    return {**_kept(said, "streaming", "pushNotifications"), **_filled(extensions=extensions)}


def _extended(card: Card) -> dict[str, bool]:
    extended = _object(card, "capabilities").get("extendedAgentCard")
    return {"supportsAuthenticatedExtendedCard": True} if extended else {}


def _skill(skill: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: skill.get(name) or "" for name in ("id", "name", "description")},
        "tags": _list(skill, "tags"),
        **_kept(skill, "examples", "inputModes", "outputModes"),
    }


def _older_skills(card: Card) -> list[dict[str, Any]]:
    """Skills that all say their modes: readers of 0.2 and 0.3 exist that want them."""
    defaults = {
        "inputModes": _list(card, "defaultInputModes"),
        "outputModes": _list(card, "defaultOutputModes"),
    }
    return [{**defaults, **_skill(skill)} for skill in _list(card, "skills")]


def _worded_skill(skill: dict[str, Any]) -> dict[str, Any]:
    return {**skill, **{name: _worded(skill[name]) for name in ("inputModes", "outputModes")}}


def _worded(modes: Iterable[str]) -> list[str]:
    """Each mode, and before it the word there was for it."""
    both = (mode for media in modes for mode in (WORDS.get(media, media), media))
    return list(dict.fromkeys(both))


def _schemes(card: Card, spelled: Callable[[Scheme], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The schemes the dialect can tell, by name."""
    named = _object(card, "securitySchemes")
    return {name: told for name, scheme in named.items() if (told := spelled(scheme))}


def _wrapped(scheme: Scheme, flows: Flows) -> dict[str, Any]:
    """A scheme as 1.0 has it; empty if none of its flows is among these."""
    for wrapper, (_, members) in SCHEMES.items():
        if wrapper in scheme:
            said = _kept(scheme[wrapper], "description", *members)
            if "flows" in members:
                said["flows"] = _flows(_object(said, "flows"), flows)
            return {wrapper: said} if said.get("flows") != {} else {}
    return {}


def _typed(scheme: Scheme, flows: Flows = FLOWS) -> dict[str, Any]:
    """A scheme as OpenAPI has it; empty if none of its flows is among these."""
    for wrapper, said in _wrapped(scheme, flows).items():
        if "location" in said:
            said["in"] = said.pop("location")
        return {"type": SCHEMES[wrapper][0], **said}
    return {}


def _flows(said: Mapping[str, Any], known: Flows) -> dict[str, Any]:
    return {
        name: {"scopes": {}, **_kept(flow, *known[name])}
        for name, flow in said.items()
        if name in known
    }


def _alternatives(of: Mapping[str, Any], known: Collection[str]) -> list[dict[str, list[str]]]:
    """Requirements as OpenAPI has them: one of these, whole."""
    spelled = [
        {name: _list(scopes, "list") for name, scopes in _object(one, "schemes").items()}
        for one in _list(of, "securityRequirements")
    ]
    return [one for one in spelled if all(name in known for name in one)]


def _required(alternatives: list[dict[str, list[str]]]) -> list[dict[str, Any]]:
    """Requirements as the draft and 1.0 have them."""
    return [
        {"schemes": {name: {"list": scopes} for name, scopes in one.items()}}
        for one in alternatives
    ]


def _requirements(of: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All requirements, also those that name a scheme the card does not declare."""
    named = [name for one in _list(of, "securityRequirements") for name in _object(one, "schemes")]
    return _required(_alternatives(of, named))


def _http_schemes(card: Card) -> list[str]:
    """What stands before the credentials in Authorization, of the schemes that are required.

    If none of them uses that header, the names of their types: an empty list would say that nothing is required.
    """
    schemes = _object(card, "securitySchemes")
    names = [name for one in _requirements(card) for name in one["schemes"]]
    told = [said for name in names if (said := _typed(schemes.get(name, {}), FINAL_FLOWS))]
    found = [
        said["scheme"] if said["type"] == "http" else "Bearer"
        for said in told
        if said["type"] in {"http", "oauth2", "openIdConnect"}
    ]
    return list(dict.fromkeys(found or [said["type"] for said in told]))


def _kept(of: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The members of these names that are there."""
    return {name: of[name] for name in names if of.get(name) is not None}


def _filled(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


def _list(of: Mapping[str, Any], name: str) -> list[Any]:
    return list(of.get(name) or ())


def _object(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(of.get(name) or {})
