"""Who is asking, as a value. Bindings obtain one from `access`; operations take it as an argument."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from a2a_tasks.protocol.errors import InvalidParams

__all__ = ["ANONYMOUS", "TENANTS", "Caller", "Scope", "Shelf", "is_tenant", "scope_in"]

#: The owner of what the callers of a tenant share; no principal is called this.
TENANTS = "*"
#: Characters of the column that holds a drawer's tenant.
LONGEST = 256
#: A slash stands between it and the tenant a request names.
_TENANT = re.compile(r"[^/\x00-\x1f\x7f]{0,128}")


def is_tenant(text: str) -> bool:
    """May a tenant of credentials be called this?"""
    return bool(_TENANT.fullmatch(text))


class Shelf(NamedTuple):
    """What is read of a drawer."""

    owner: str
    #: Only what this principal has made; empty = all of it.
    maker: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """The drawer an object lies in: what is in another one does not exist for this caller (law 7)."""

    tenant: str
    #: A principal, or `TENANTS`.
    owner: str
    agent: str
    #: The other drawer, read and not written: what was made while the agent's visibility was the other one.
    beside: Shelf | None = None

    @property
    def principal(self) -> str:
        """Who asks, whoever the drawer belongs to."""
        return self.beside.owner if self.owner == TENANTS and self.beside else self.owner

    @property
    def shelves(self) -> tuple[Shelf, ...]:
        """All that is read."""
        own = Shelf(self.owner)
        return (own,) if self.beside is None else (own, self.beside)


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

    def scope(self, agent: str, tenant: str = "", *, shared: bool = False) -> Scope:
        """The drawer for an agent and the `tenant` of a request; `shared`: with all callers of the own tenant.

        A request's tenant is routing, not authority (A2A 1.0 §3.2.7): it only subdivides the caller's own.
        Raises InvalidParams if the names of both are too long.
        """
        return scope_in(self._divided(tenant), self.principal, agent, shared=shared)

    def own(self, agent: str, tenant: str = "") -> Scope:
        """The drawer of this caller alone, whatever it shares. Raises InvalidParams, as above."""
        return Scope(self._divided(tenant), self.principal, agent)

    def _divided(self, tenant: str) -> str:
        """The own tenant and that of a request as one name, of which there is one for each two (`is_tenant`)."""
        if not tenant:
            return self.tenant
        divided = f"{self.tenant}/{tenant}"
        if len(divided) > LONGEST:
            raise InvalidParams.field("tenant", "is too long")
        return divided


def scope_in(tenant: str, principal: str, agent: str, *, shared: bool) -> Scope:
    """The drawer of a principal in a tenant that was divided already. Without a tenant of its own it shares nothing."""
    if not tenant or tenant.startswith("/"):
        return Scope(tenant, principal, agent)
    if shared:
        return Scope(tenant, TENANTS, agent, Shelf(principal))
    return Scope(tenant, principal, agent, Shelf(TENANTS, principal))


ANONYMOUS = Caller()
