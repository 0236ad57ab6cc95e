"""The access rules of agents: accepted schemes, required scopes, grants, and who sees the tasks.

The rules are defined here alone: `access` enforces them and cards declare them, so that both always agree.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 - Django's own name

from a2a_tasks.agents.agent import Agent
from a2a_tasks.conf import conf, of_settings, project

__all__ = [
    "API_KEY",
    "BASIC",
    "BEARER",
    "DISCOVERY",
    "GRANTS",
    "MUTUAL_TLS",
    "SCHEMES",
    "VISIBILITIES",
    "list_accepted",
    "allows_anonymous",
    "check",
    "check_visibility",
    "is_scope",
    "is_listed",
    "is_shared",
    "open_to_anybody",
    "requirements",
    "sample_header",
    "security_of",
]

BEARER, API_KEY, BASIC, MUTUAL_TLS = "bearer", "apiKey", "basic", "mutualTLS"
#: All supported schemes by their names in cards, in the order that clients should prefer.
SCHEMES = (BEARER, API_KEY, BASIC, MUTUAL_TLS)
#: Callers that may use an agent: all accepted ones, or those with a grant.
GRANTS = ("open", "listed")
#: The tasks that a caller sees: its own, or those of its whole tenant.
VISIBILITIES = ("own", "tenant")
#: Path of the discovery document of OpenID providers, below their issuer (OIDC Discovery §4).
DISCOVERY = "/.well-known/openid-configuration"
#: The syntax of a scope (RFC 6749 §3.3).
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}")


def is_scope(text: str) -> bool:
    """Return whether the text is a valid scope."""
    return bool(_SCOPE.fullmatch(text))


@of_settings
@functools.cache
def allows_anonymous() -> bool:
    """Return whether callers without credentials are accepted: by default only on the embedded host."""
    if conf.ANONYMOUS == "auto":
        return bool(project.A2A_EMBEDDED)
    return bool(conf.ANONYMOUS.strip().lower() in {"1", "true", "yes", "on"})


@of_settings
@functools.cache
def list_enabled() -> tuple[str, ...]:
    switches = {
        BEARER: conf.JWT_ISSUER,
        API_KEY: conf.API_KEYS,
        BASIC: conf.BASIC,
        MUTUAL_TLS: conf.MTLS_PEERS,
    }
    return tuple(name for name in SCHEMES if switches[name])


def list_accepted(agent: Agent | None) -> tuple[str, ...]:
    """Return the schemes that an agent accepts (None: the host's own surfaces), the preferred one first."""
    if agent is None or not agent.schemes:
        return list_enabled()
    return tuple(name for name in list_enabled() if name in agent.schemes)


def open_to_anybody(agent: Agent | None) -> bool:
    """Return whether callers without credentials may use the agent. They may not if it requires scopes or a scheme."""
    narrowed = agent is None or agent.scopes or agent.schemes
    return allows_anonymous() and not narrowed


def is_listed(agent: Agent) -> bool:
    """Return whether callers need a grant; without one the agent does not exist for them. A misspelt value means listed."""
    return (agent.grants or _grants()) != "open"


@of_settings
@functools.cache
def _grants() -> str:
    return str(conf.GRANTS)


def is_shared(agent: Agent) -> bool:
    """Return whether the callers of a tenant share the tasks of this agent."""
    return (agent.visibility or conf.VISIBILITY) == "tenant"


def requirements(agent: Agent, scopes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the alternative requirements of the agent (A2A 1.0 §4.5): each scheme, with all scopes."""
    needed = sorted({*agent.scopes, *scopes})
    return [{"schemes": {name: {"list": needed}}} for name in list_accepted(agent)]


def security_of(agent: Agent) -> dict[str, Any]:
    """Return the members of a card about security; empty for an open agent, which requires no credentials."""
    is_open = open_to_anybody(agent)
    if is_open and not (agent.has_extended_card or any(skill.scopes for skill in agent.skills)):
        return {}
    schemes = {name: _declare(name) for name in list_accepted(agent)}
    members: dict[str, Any] = {"securitySchemes": schemes}
    return members if is_open else {**members, "securityRequirements": requirements(agent)}


def _declare(name: str) -> Mapping[str, Any]:
    """Return the declaration of a scheme (A2A 1.0 §4.5)."""
    if name == API_KEY:
        return {"apiKeySecurityScheme": {"location": "header", "name": str(conf.API_KEY_HEADER)}}
    if name == BASIC:
        return {"httpAuthSecurityScheme": {"scheme": "Basic"}}
    if name == MUTUAL_TLS:
        return {"mtlsSecurityScheme": {}}
    if conf.JWT_JWKS_URL:
        return {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}
    url = conf.JWT_ISSUER.rstrip("/") + DISCOVERY
    return {"openIdConnectSecurityScheme": {"openIdConnectUrl": url}}


def check(agent: Agent) -> Iterable[CheckMessage]:
    """Yield the mistakes in the access rules of an agent."""
    where = f"{type(agent).__module__}.{type(agent).__qualname__}"
    if any(isinstance(value, str) for value in (agent.scopes, agent.schemes)):
        yield Error(
            "scopes and schemes are lists",
            hint='scopes = ["invoices"], not "invoices".',
            obj=where,
            id="a2a_tasks.E023",
        )
        return
    unknown = [name for name in agent.schemes if name not in SCHEMES]
    if unknown:
        yield Error(
            f"schemes has {unknown[0]!r}",
            hint=f"Each is one of {', '.join(map(repr, SCHEMES))}.",
            obj=where,
            id="a2a_tasks.E021",
        )
    named = [*agent.scopes, *(scope for skill in agent.skills for scope in skill.scopes)]
    for scope in named:
        if not is_scope(scope):
            yield Error(
                f"{scope!r} cannot be a scope",
                hint="Letters, digits and signs of ASCII, without spaces, quotes and backslashes.",
                obj=where,
                id="a2a_tasks.E022",
            )
    if agent.grants not in ("", *GRANTS):
        yield Error(
            f"grants is {agent.grants!r}",
            hint=f"It is one of {', '.join(map(repr, GRANTS))}.",
            obj=where,
            id="a2a_tasks.E041",
        )
    if not unknown and not list_accepted(agent) and not open_to_anybody(agent):
        yield Warning(
            "no caller can use the agent: the host accepts none of its schemes",
            hint="A2A_API_KEYS=1, A2A_JWT_ISSUER, A2A_BASIC=1 and A2A_MTLS_PEERS switch them on.",
            obj=where,
            id="a2a_tasks.W020",
        )


def check_visibility(agent: Agent) -> Iterable[CheckMessage]:
    """Yield the mistakes in the visibility of an agent."""
    if agent.visibility not in ("", *VISIBILITIES):
        yield Error(
            f"visibility is {agent.visibility!r}",
            hint=f"It is one of {', '.join(map(repr, VISIBILITIES))}.",
            obj=f"{type(agent).__module__}.{type(agent).__qualname__}",
            id="a2a_tasks.E040",
        )


def sample_header(agent: Agent) -> str:
    """Return a sample header for a command line, with a placeholder for credentials; empty = none are needed."""
    if open_to_anybody(agent):
        return ""
    if API_KEY in list_accepted(agent):
        return f"{conf.API_KEY_HEADER}: YOUR-KEY"
    return "Authorization: YOURS"
