"""Operators of the management API, the rights that routes require of them, and the rows that they see."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from django.contrib.auth.models import AbstractUser
from django.db.models import Model, QuerySet
from rest_framework.request import Request

from a2a_console.api.exceptions import MissingPermission
from a2a_console.staff import of_tenants
from a2a_tasks.access.grants import find_operated_in_thread
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import InsufficientScope, Unauthenticated

__all__ = ["KEYS", "READ", "WRITE", "Operator", "RequiredRight", "filter_visible", "get_operator"]

_M = TypeVar("_M", bound=Model)
#: The scopes of callers. None of them implies another.
READ, WRITE, KEYS = "admin:read", "admin:write", "admin:keys"


@dataclass(frozen=True)
class RequiredRight:
    """The right that a route requires: a scope of a caller, or one of these permissions of staff (empty: any staff)."""

    scope: str
    permissions: tuple[str, ...]
    #: True if a caller without the scope has the right for the agents that it was granted to operate.
    of_agents: bool = False

    @classmethod
    def to_view(cls, model: str, *, of_agents: bool = False) -> RequiredRight:
        """Return the right to read the rows of a model, named `app.model`."""
        app, _, name = model.partition(".")
        return cls(READ, (f"{app}.view_{name}", f"{app}.change_{name}"), of_agents)

    @classmethod
    def to_change(
        cls, model: str, scope: str = WRITE, *, verb: str = "change", of_agents: bool = False
    ) -> RequiredRight:
        """Return the right to change the rows of a model. The admin defines the meaning of `verb` for each model."""
        app, _, name = model.partition(".")
        return cls(scope, (f"{app}.{verb}_{name}",), of_agents)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """The sender of a request: a caller with scopes, or a user of the staff with permissions."""

    #: The name in tasks and in the audit log: `key:...`, `jwt:...`, `user:7`.
    principal: str
    #: The caller's own tenant; empty = none, or the operator is a user of the staff.
    tenant: str = ""
    #: The tenants whose rows are visible, with those of tenants below them; None = all.
    tenants: frozenset[str] | None = None
    #: The agents whose rows are visible; None = all.
    agents: frozenset[str] | None = None
    scopes: frozenset[str] = frozenset()
    person: AbstractUser | None = field(default=None, repr=False)
    #: The caller whose grants are read; None = a user of the staff, who has permissions.
    caller: Caller | None = field(default=None, repr=False)

    @property
    def sees_all(self) -> bool:
        """True if all rows are visible."""
        return self.tenants is None and self.agents is None

    def operates(self, agent: str) -> bool:
        """Return whether the agent is visible."""
        return self.agents is None or agent in self.agents

    def narrow(self, right: RequiredRight) -> Operator:
        """Return the operator, narrowed to this right. Raises InsufficientScope or MissingPermission."""
        if self.caller is not None and right.of_agents and right.scope not in self.scopes:
            agents = find_operated_in_thread(self.caller)
            if agents is None or agents:
                return replace(self, agents=agents)
        if self.person is None:
            self.check_scopes(right.scope)
        elif right.permissions and not any(map(self.person.has_perm, right.permissions)):
            needed = right.permissions[0]
            raise MissingPermission(f"You lack the permission: {needed}", permission=needed)
        return self

    def check_scopes(self, *scopes: str) -> None:
        """Check the scopes. Raises InsufficientScope for a caller that lacks one; a user of the staff has all."""
        lacking = [scope for scope in scopes if scope not in self.scopes]
        if lacking and self.person is None:
            raise InsufficientScope.for_scopes(lacking)


def get_operator(request: Request) -> Operator:
    """Return the sender of the request. Raises Unauthenticated."""
    operator = request.auth
    if not isinstance(operator, Operator):
        raise Unauthenticated
    return operator


def filter_visible(operator: Operator, rows: QuerySet[_M], *, by: str = "") -> QuerySet[_M]:
    """Return the rows that are visible to the operator. `by` is the lookup of the row's task or context: `task__`."""
    rows = of_tenants(rows, operator.tenants, f"{by}tenant")
    if operator.agents is None:
        return rows
    return rows.filter(**{f"{by}agent__in": sorted(operator.agents)})
