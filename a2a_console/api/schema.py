"""The parts of the OpenAPI description that drf-spectacular cannot derive from the viewsets."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent

from a2a_console.api.exceptions import MEDIA_TYPE, ProblemSerializer
from a2a_console.api.operators import RequiredRight
from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, list_accepted
from a2a_tasks.conf import conf

__all__ = ["PROBLEMS", "HostAuthenticationScheme", "HostSchema", "require_all_members"]

SESSION = "session"
#: Components with optional members.
LOOSE = {"Problem"}
#: Errors of routes: of any route, of a route of one object, of a change, of a change of one object.
ALWAYS = {
    400: "The request is wrong; `errors` names what.",
    401: "No credentials, or wrong ones; `WWW-Authenticate` names the ways in.",
    403: "The scope, or the permission, is missing, and named; or the CSRF token of a session.",
    500: "A mistake of the host.",
    503: "The database is away, or busy; `Retry-After` says when to come again.",
}
OF_ONE = {404: "There is no such thing for this operator."}
OF_CHANGES = {413: "The body is too large.", 415: "The body is not `application/json`."}
OF_CHANGES_OF_ONE = {409: "It is not in a state in which this can be done."}
PROBLEMS = ALWAYS | OF_ONE | OF_CHANGES | OF_CHANGES_OF_ONE
HEADERS = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}}},
    503: {"Retry-After": {"schema": {"type": "integer"}}},
}


class HostSchema(AutoSchema):
    """The description of an action of a `HostViewSet`."""

    view: Any

    def get_operation_id(self) -> str:
        """Return `list_tasks`, `get_task` or `cancel_task`."""
        action, noun = self.view.action, self.view.basename.replace("-", "_")
        if action == "list":
            return f"list_{noun}s"
        return f"{'get' if action == 'retrieve' else action}_{noun}"

    def get_override_parameters(self) -> list[Any]:
        """Return the serializer of the query."""
        serializer_class = self.view.get_query_serializer_class()
        return [serializer_class] if serializer_class else []

    def get_request_serializer(self) -> Any:
        """Return the serializer of the body."""
        return self.view.get_request_serializer_class()

    def get_paginated_name(self, serializer_name: str) -> str:
        """Return the name from the pagination, or `TaskPage` for pages of `TaskLine`."""
        name: str = self.view.pagination_class.schema_name
        return name or serializer_name.removesuffix("Line") + "Page"

    def get_operation(self, *args: Any) -> dict[str, Any] | None:
        """Add the summary, the required right and the errors."""
        operation: dict[str, Any] | None = super().get_operation(*args)
        if operation is None:
            return None
        text = operation["description"]
        operation["summary"] = text.partition("\n")[0].rstrip(".")
        operation["description"] = f"{text}\n\n{_describe(self.view.get_required_right())}"
        responses = operation["responses"]
        for answer in responses.values():
            answer["description"] = answer["description"] or self._describe_component(answer)
        problem = self.resolve_serializer(ProblemSerializer, "response").ref
        for status, about in self._list_problems().items():
            responses[str(status)] = {
                "content": {MEDIA_TYPE: {"schema": problem}},
                "description": about,
                **({"headers": HEADERS[status]} if status in HEADERS else {}),
            }
        return operation

    def _list_problems(self) -> dict[int, str]:
        of_one, is_change = "{" in self.path, self.method != "GET"
        return {
            **ALWAYS,
            **(OF_ONE if of_one else {}),
            **(OF_CHANGES if is_change else {}),
            **(OF_CHANGES_OF_ONE if of_one and self.method == "POST" else {}),
        }

    def _describe_component(self, answer: dict[str, Any]) -> str:
        """Return the first line of the description of the answer's component."""
        (media,) = answer["content"].values()
        name = media["schema"]["$ref"].rpartition("/")[2]
        component = self.registry[name, ResolvedComponent.SCHEMA]
        return str(component.schema["description"]).partition("\n")[0]


def _describe(right: RequiredRight) -> str:
    permissions = " or ".join(f"`{permission}`" for permission in right.permissions)
    granted = ", or `operate` granted on the agent" if right.of_agents else ""
    return f"Scope `{right.scope}`{granted}; of staff, permission {permissions}."


class HostAuthenticationScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The ways to authenticate: the schemes that the host accepts, and the session of the admin."""

    target_class = "a2a_console.api.authentication.HostAuthentication"

    @property
    def name(self) -> list[str]:  # type: ignore[override]
        """The name of each scheme, as in agent cards."""
        return [*list_accepted(None), SESSION]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """Return the schemes as alternatives."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        """Return the OpenAPI definition of each scheme."""
        known = {
            BEARER: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            API_KEY: {"type": "apiKey", "in": "header", "name": str(conf.API_KEY_HEADER)},
            BASIC: {"type": "http", "scheme": "basic"},
            MUTUAL_TLS: {"type": "mutualTLS"},
            SESSION: {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME},
        }
        return [known[name] for name in self.name]


def require_all_members(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Mark all members of answers as required, and forbid unknown members in bodies (a hook of drf-spectacular)."""
    for name, component in result["components"]["schemas"].items():
        if name.endswith("Request"):
            component["additionalProperties"] = False
        elif name not in LOOSE:
            component["required"] = sorted(component["properties"])
    _remove_marks(result)
    return result


def _remove_marks(found: Any) -> None:
    """Remove the internal marks of drf-spectacular."""
    if isinstance(found, dict):
        found.pop("x-spec-enum-id", None)
    for below in found.values() if isinstance(found, dict) else found:
        if isinstance(below, dict | list):
            _remove_marks(below)
