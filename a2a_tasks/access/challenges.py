"""The challenges of a refusal: one WWW-Authenticate for each accepted scheme (RFC 9110 §11.6.1)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_tasks.agents import Agent
from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, list_accepted
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import A2AError, InsufficientScope, Unauthenticated, WrongCredentials

__all__ = ["challenges"]

REALM = 'realm="a2a"'


def challenges(fault: A2AError, agent: Agent | None) -> Iterator[str]:
    """Yield the challenges of an error; most errors have none."""
    if isinstance(fault, Unauthenticated):
        for name in list_accepted(agent):
            yield _challenge(name, agent, wrong=isinstance(fault, WrongCredentials))
    elif isinstance(fault, InsufficientScope) and BEARER in list_accepted(agent):
        needed = " ".join(agent.scopes) if agent else fault.metadata["scope"]
        yield f'Bearer {REALM}, error="insufficient_scope", scope="{needed}"'  # RFC 6750 §3.1


def _challenge(name: str, agent: Agent | None, *, wrong: bool) -> str:
    """Return the challenge of a scheme.

    API keys and certificates have no registered HTTP scheme: theirs are named after the types of OpenAPI.
    """
    if name == BEARER:
        scopes = f', scope="{" ".join(agent.scopes)}"' if agent and agent.scopes else ""
        return f"Bearer {REALM}{scopes}" + (', error="invalid_token"' if wrong else "")
    parameters = {
        BASIC: f'Basic {REALM}, charset="UTF-8"',  # RFC 7617 §2.1
        API_KEY: f'ApiKey {REALM}, in="header", name="{conf.API_KEY_HEADER}"',
        MUTUAL_TLS: f"MutualTLS {REALM}",
    }
    return parameters[name]
