"""Who may come in: callers by the protocol's own door, staff by their session of the admin. Deny by default."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from a2a_tasks.access.callers import identify
from a2a_tasks.access.credentials import PEER, Credentials, shown
from a2a_tasks.access.grants import operated_in_thread
from a2a_tasks.access.staff import CALLER
from a2a_tasks.admin.staff import of_tenants, tenants_of
from a2a_tasks.agents.security import MUTUAL_TLS
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import Forbidden, InsufficientScope, Unauthenticated

__all__ = [
    "KEYS",
    "READ",
    "WRITE",
    "Allowed",
    "Door",
    "Forgery",
    "MissingPermission",
    "Operator",
    "Right",
    "operator_of",
    "there_for",
]

_M = TypeVar("_M", bound=Model)
#: The scopes of callers. None of them implies another.
READ, WRITE, KEYS = "admin:read", "admin:write", "admin:keys"


@dataclass(frozen=True)
class Right:
    """What a route asks for: a scope of a caller, or one of these permissions of a person (none: any of the staff)."""

    scope: str
    permissions: tuple[str, ...]
    #: Callers without the scope have it with those agents that they were granted to operate.
    of_agents: bool = False

    @classmethod
    def to_view(cls, model: str, *, of_agents: bool = False) -> Right:
        """To look at the rows of a model, `app.model`."""
        app, _, name = model.partition(".")
        return cls(READ, (f"{app}.view_{name}", f"{app}.change_{name}"), of_agents)

    @classmethod
    def to_change(
        cls, model: str, scope: str = WRITE, *, verb: str = "change", of_agents: bool = False
    ) -> Right:
        """To do something to them. What `change` means for each model is the admin's word."""
        app, _, name = model.partition(".")
        return cls(scope, (f"{app}.{verb}_{name}",), of_agents)


class MissingPermission(Forbidden):
    """A person lacks a permission; `metadata["permission"]` names it."""


class Forgery(Forbidden):
    """A change that another site may have a browser send: by a session, without its CSRF token, or as the browser says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """Who acts: a caller with its scopes, or a person of the staff with permissions."""

    #: As tasks and the log name it: `key:...`, `jwt:...`, `user:7`.
    principal: str
    #: The caller's own; empty = the host's, or a person's.
    tenant: str = ""
    #: Whose rows there are for this operator, with those of tenants below them; None = all.
    tenants: frozenset[str] | None = None
    #: The agents whose rows there are for this operator; None = all.
    agents: frozenset[str] | None = None
    scopes: frozenset[str] = frozenset()
    person: AbstractUser | None = field(default=None, repr=False)
    #: Whom grants are asked about; None = a person, whom permissions are for.
    caller: Caller | None = field(default=None, repr=False)

    @property
    def sees_all(self) -> bool:
        """Are all rows there for this operator?"""
        return self.tenants is None and self.agents is None

    def operates(self, agent: str) -> bool:
        """Is the agent there for this operator?"""
        return self.agents is None or agent in self.agents

    def within(self, right: Right) -> Operator:
        """The operator as a route has it that asks for the right. Raises InsufficientScope or MissingPermission."""
        if self.caller is not None and right.of_agents and right.scope not in self.scopes:
            agents = operated_in_thread(self.caller)
            if agents is None or agents:
                return replace(self, agents=agents, tenants=self._tenants_to_operate())
        self.check(right)
        return self

    def _tenants_to_operate(self) -> frozenset[str] | None:
        """Whose rows an agent is operated for. A caller without a tenant sees those of others by `admin:read` alone."""
        if self.tenants is None and READ not in self.scopes:
            return frozenset({""})
        return self.tenants

    def check(self, right: Right) -> None:
        """Raises InsufficientScope or MissingPermission."""
        if self.person is None:
            self.check_scopes(right.scope)
        elif right.permissions and not any(map(self.person.has_perm, right.permissions)):
            needed = right.permissions[0]
            raise MissingPermission(f"You lack the permission: {needed}", permission=needed)

    def check_scopes(self, *scopes: str) -> None:
        """Raises InsufficientScope for a caller that lacks one of them; a person has all."""
        lacking = [scope for scope in scopes if scope not in self.scopes]
        if lacking and self.person is None:
            raise InsufficientScope.lacking(lacking)


class Door(BaseAuthentication):
    """DRF's authentication: the operator is `request.auth`."""

    def authenticate(self, request: Request) -> tuple[Any, Operator] | None:
        """What a request says itself counts first, then its session, last the certificate of its connection.

        Raises what `identify` raises, and Forgery.
        """
        credentials = _credentials(request._request)  # noqa: SLF001 - DRF's name for Django's request
        credential = shown(credentials)
        said = credential is not None and credential.scheme != MUTUAL_TLS
        by_session = None if said else _by_session(request)
        if by_session is not None or credential is None:
            return by_session
        _refuse_other_sites(request)
        caller = async_to_sync(identify)(credentials)
        setattr(request._request, CALLER, caller)  # noqa: SLF001 - who acts, for the audit log
        return AnonymousUser(), _by_credentials(caller)


def _refuse_other_sites(request: Request) -> None:
    """Browsers send passwords and certificates along by themselves, but say for whom (Fetch Metadata). Raises Forgery."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if request.method not in {"GET", "HEAD"} and site not in {"none", "same-origin"}:
        raise Forgery("Another site has a browser send this")


def _credentials(request: HttpRequest) -> Credentials:
    """What a request brings to show who sends it, as the protocol's bindings read it."""
    scope = getattr(request, "scope", {})
    counted = Counter(name.decode("latin-1").lower() for name, _ in scope.get("headers", ()))
    client = scope.get("client")
    peer = scope.get(PEER, client)
    return Credentials(
        {name.lower(): text for name, text in request.headers.items()},
        peer[0] if peer else "",
        client[0] if client else "",
        [name for name, times in counted.items() if times > 1],
    )


def _by_credentials(caller: Caller) -> Operator:
    tenants = frozenset({caller.tenant}) if caller.tenant else _tenants_of_user(caller)
    return Operator(
        principal=caller.principal,
        tenant=caller.tenant,
        tenants=tenants,
        scopes=caller.scopes,
        caller=caller,
    )


def _tenants_of_user(caller: Caller) -> frozenset[str] | None:
    """Whoever shows the password of one of Django's users sees what that user would at a session; other callers see all."""
    kind, _, key = caller.principal.partition(":")
    if kind != "user":
        return None
    person = get_user_model().objects.filter(pk=key).first()
    return tenants_of(person or AnonymousUser())


def _by_session(request: Request) -> tuple[Any, Operator] | None:
    person = getattr(request._request, "user", None)  # noqa: SLF001 - as above
    if person is None or not (person.is_active and person.is_staff):
        return None
    try:
        SessionAuthentication().enforce_csrf(request)
    except PermissionDenied:
        raise Forgery("The CSRF token is missing or wrong") from None
    operator = Operator(principal=f"user:{person.pk}", tenants=tenants_of(person), person=person)
    return person, operator


class Allowed(BasePermission):
    """DRF's permission: the operator has the right of the route; a route that names none is for nobody."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """From here on the operator is the one of this route. Raises Unauthenticated, InsufficientScope, MissingPermission."""
        if not isinstance(request.auth, Operator):
            raise Unauthenticated
        verb = "get" if request.method == "HEAD" else str(request.method).lower()
        handler = getattr(view, verb, None)
        if handler is None or verb not in view.http_method_names:
            return True  # the answer will be 405
        right = getattr(handler, "right", None)
        if right is None:
            return False
        request.auth = request.auth.within(right)
        return True


def operator_of(request: Request) -> Operator:
    """Who sends the request; the door has let it in."""
    operator = request.auth
    if not isinstance(operator, Operator):
        raise Unauthenticated
    return operator


def there_for(operator: Operator, rows: QuerySet[_M], *, by: str = "") -> QuerySet[_M]:
    """Those rows that there are for the operator. `by` leads from a row to what has a tenant and an agent: `task__`."""
    rows = of_tenants(rows, operator.tenants, f"{by}tenant")
    if operator.agents is None:
        return rows
    return rows.filter(**{f"{by}agent__in": sorted(operator.agents)})
