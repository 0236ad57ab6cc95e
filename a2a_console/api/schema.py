"""The parts of the OpenAPI description that drf-spectacular cannot derive from the viewsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from drf_spectacular import utils
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.settings import SPECTACULAR_DEFAULTS, spectacular_settings

from a2a_console.api.exceptions import MEDIA_TYPE, ProblemSerializer
from a2a_console.api.operators import RequiredRight
from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, list_accepted
from a2a_tasks.conf import conf

__all__ = [
    "DESCRIPTION",
    "PROBLEMS",
    "HostAuthenticationScheme",
    "HostSchema",
    "extend_schema",
    "require_all_members",
]

_F = TypeVar("_F", bound=Callable[..., Any])
SESSION = "session"
#: The settings of drf-spectacular for this description, complete: a project may have others for its own.
DESCRIPTION = {
    **{
        name: value
        for name, value in SPECTACULAR_DEFAULTS.items()
        if not name.startswith("SERVE_") and name != "DEFAULT_GENERATOR_CLASS"
    },
    "TITLE": "A2A host: management API",
    "DESCRIPTION": "What operators see and do in the admin, for their programs. Guide: docs/api.md.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["a2a_console.api.schema.require_all_members"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "COMPONENT_SPLIT_REQUEST": True,
}
#: Components with optional members.
LOOSE = {"Problem"}
#: Errors of routes: of any route, of a route of one object, of a change, of a change of one object.
ALWAYS = {
    400: "The request is wrong; `errors` names what.",
    401: "No credentials, or wrong ones; `WWW-Authenticate` lists the accepted schemes.",
    403: "The scope, or the permission, is missing, and named; or the CSRF token of a session.",
    500: "Internal error.",
    503: "The database is away, or busy; `Retry-After` says when to retry.",
}
OF_ONE = {404: "Not found, or not visible to this operator."}
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

    def is_excluded(self) -> bool:
        """Return whether another API is described, of the project that the host is part of."""
        return bool(DESCRIPTION["TITLE"] != spectacular_settings.TITLE)

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


def extend_schema(**options: Any) -> Callable[[_F], _F]:
    """Return drf-spectacular's decorator of this name, on `HostSchema` whatever class the project's settings name."""

    def extend(method: _F) -> _F:
        method.schema = HostSchema  # type: ignore[attr-defined]
        return utils.extend_schema(**options)(method)

    return extend


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
