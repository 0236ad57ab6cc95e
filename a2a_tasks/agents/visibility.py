"""The tasks that a caller sees: its own, or those of its whole tenant. An agent may override the host's setting."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.checks import CheckMessage, Error

from a2a_tasks.agents.agent import Agent
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.conf import conf

__all__ = ["VISIBILITIES", "check", "scope_of", "is_shared"]

VISIBILITIES = ("own", "tenant")


def is_shared(agent: Agent) -> bool:
    """Return whether the callers of a tenant share the tasks of this agent."""
    return (agent.visibility or conf.VISIBILITY) == "tenant"


def scope_of(agent: Agent, caller: Caller, tenant: str = "") -> OwnerScope:
    """Return the scope of a caller's objects, with the `tenant` of a request. Raises InvalidParams for a long one."""
    return caller.scope(agent.slug, tenant, shared=is_shared(agent))


def check(agent: Agent) -> Iterable[CheckMessage]:
    """Yield the mistakes in the visibility of an agent."""
    if agent.visibility not in ("", *VISIBILITIES):
        yield Error(
            f"visibility is {agent.visibility!r}",
            hint=f"It is one of {', '.join(map(repr, VISIBILITIES))}.",
            obj=f"{type(agent).__module__}.{type(agent).__qualname__}",
            id="a2a_tasks.E040",
        )
