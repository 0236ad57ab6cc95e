"""The caller of a request, as a value. Bindings obtain one from `access`; operations take it as an argument."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from a2a_tasks.protocol.errors import InvalidParams

__all__ = ["ANONYMOUS", "TENANTS", "Caller", "OwnerScope", "ScopePart", "is_tenant", "scope_in"]

#: The owner of objects that all callers of a tenant share; no principal has this name.
TENANTS = "*"
#: Maximum length of the column that holds the tenant of a scope.
MAX_LENGTH = 256
#: A slash separates it from the tenant that a request names, so it may not contain one.
_TENANT = re.compile(r"[^/\x00-\x1f\x7f]{0,128}")


def is_tenant(text: str) -> bool:
    """Return whether credentials may have a tenant of this name."""
    return bool(_TENANT.fullmatch(text))


class ScopePart(NamedTuple):
    """One readable part of a visibility scope."""

    owner: str
    #: Limits the part to objects made by this principal; empty = all objects of the owner.
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class OwnerScope:
    """The visibility scope of an object: objects in another scope do not exist for this caller (law 7)."""

    tenant: str
    #: A principal, or `TENANTS`.
    owner: str
    agent: str
    #: The second scope, which is read but never written: objects made while the agent had the other visibility.
    read_only: ScopePart | None = None

    @property
    def principal(self) -> str:
        """The principal of the caller, also where the scope belongs to the tenant."""
        return self.read_only.owner if self.owner == TENANTS and self.read_only else self.owner

    @property
    def quota_key(self) -> str:
        """The `quota_key` of the caller."""
        return Caller(principal=self.principal, tenant=self.tenant.partition("/")[0]).quota_key

    @property
    def parts(self) -> tuple[ScopePart, ...]:
        """All parts of the scope that the caller may read."""
        own = ScopePart(self.owner)
        return (own,) if self.read_only is None else (own, self.read_only)


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """An authenticated (or admittedly anonymous) principal."""

    #: The owner of the caller's tasks: `key:...`, `jwt:...`, `user:7`, `cert:...`; empty = anonymous.
    principal: str = ""
    #: The tenant the credentials belong to; empty = the host has no tenants.
    tenant: str = ""
    #: Rights that the credentials give beyond those of every caller.
    scopes: frozenset[str] = field(default_factory=frozenset)
    #: The agents by way of which it calls, the first one first; empty = it calls itself.
    path: tuple[str, ...] = ()

    @property
    def anonymous(self) -> bool:
        """True if no credentials identify this caller."""
        return not self.principal

    @property
    def quota_key(self) -> str:
        """The key for limits and fair shares: the tenant of the credentials, or without one the principal."""
        return f"tenant:{self.tenant}" if self.tenant else self.principal

    def scope(self, agent: str, tenant: str = "", *, shared: bool = False) -> OwnerScope:
        """Return the scope for an agent and the `tenant` of a request; `shared`: with all callers of the own tenant.

        A request's tenant is routing, not authority (A2A 1.0 §3.2.7): it only subdivides the caller's own tenant.
        Raises InvalidParams if both names together are too long.
        """
        joined = self._join_tenants(tenant) if tenant else self.tenant
        return scope_in(joined, self.principal, agent, shared=shared)

    def own(self, agent: str, tenant: str = "") -> OwnerScope:
        """Return the scope of this caller alone, even if it shares tasks. Raises InvalidParams, as above."""
        return OwnerScope(self._join_tenants(tenant), self.principal, agent)

    def _join_tenants(self, tenant: str) -> str:
        """Return the own tenant and that of a request joined into one name, unique for each pair (`is_tenant`)."""
        if not tenant:
            return self.tenant
        divided = f"{self.tenant}/{tenant}"
        if len(divided) > MAX_LENGTH:
            raise InvalidParams.field("tenant", "is too long")
        return divided


def scope_in(tenant: str, principal: str, agent: str, *, shared: bool) -> OwnerScope:
    """Return the scope of a principal in a tenant that is already joined.

    A principal without a tenant shares nothing.
    """
    if not tenant or tenant.startswith("/"):
        return OwnerScope(tenant, principal, agent)
    if shared:
        return OwnerScope(tenant, TENANTS, agent, ScopePart(principal))
    return OwnerScope(tenant, principal, agent, ScopePart(TENANTS, principal))


ANONYMOUS = Caller()
