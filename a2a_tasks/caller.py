"""Who is asking, as a value. Bindings obtain one from `access`; operations take it as an argument."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ANONYMOUS", "Caller", "Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The drawer an object lies in: what is in another one does not exist for this caller (law 7)."""

    tenant: str
    owner: str
    agent: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """An authenticated (or admittedly anonymous) principal."""

    #: Whose tasks these are: `key:...`, `jwt:...`, `user:7`, `cert:...`; empty = anonymous.
    principal: str = ""
    #: The tenant the credentials belong to; empty = the host's only one.
    tenant: str = ""
    #: What the credentials open, beyond what every caller may.
    scopes: frozenset[str] = field(default_factory=frozenset)

    @property
    def anonymous(self) -> bool:
        """Did nobody vouch for this caller?"""
        return not self.principal

    @property
    def share(self) -> str:
        """Whom limits and fair shares are counted for: the tenant of the credentials, or without one the principal."""
        return f"tenant:{self.tenant}" if self.tenant else self.principal

    def scope(self, agent: str, tenant: str = "") -> Scope:
        """The drawer for an agent and the `tenant` of a request.

        A request's tenant is routing, not authority (A2A 1.0 §3.2.7): it only subdivides the caller's own.
        """
        return Scope("/".join(filter(None, (self.tenant, tenant))), self.principal, agent)


ANONYMOUS = Caller()
