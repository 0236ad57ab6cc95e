"""Whose tasks a caller sees: its own, or those of its whole tenant too. Each agent may say; the host says for the rest."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.checks import CheckMessage, Error

from a2a_tasks.agents.agent import Agent
from a2a_tasks.caller import Caller, Scope
from a2a_tasks.conf import conf

__all__ = ["VISIBILITIES", "check", "scope_of", "shared"]

VISIBILITIES = ("own", "tenant")


def shared(agent: Agent) -> bool:
    """Do the callers of a tenant share the tasks of this agent?"""
    return (agent.visibility or conf.VISIBILITY) == "tenant"


def scope_of(agent: Agent, caller: Caller, tenant: str = "") -> Scope:
    """The drawer in which a caller's objects lie, with the `tenant` of a request. Raises InvalidParams for one too long."""
    return caller.scope(agent.slug, tenant, shared=shared(agent))


def check(agent: Agent) -> Iterable[CheckMessage]:
    """Mistakes in what an agent says of it."""
    if agent.visibility not in ("", *VISIBILITIES):
        yield Error(
            f"visibility is {agent.visibility!r}",
            hint=f"It is one of {', '.join(map(repr, VISIBILITIES))}.",
            obj=f"{type(agent).__module__}.{type(agent).__qualname__}",
            id="a2a_tasks.E040",
        )
