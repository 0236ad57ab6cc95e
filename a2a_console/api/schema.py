"""The parts of the OpenAPI description that drf-spectacular cannot derive from the viewsets."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from drf_spectacular import utils
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.settings import SPECTACULAR_DEFAULTS, spectacular_settings
from drf_spectacular.utils import Direction, OpenApiParameter, OpenApiResponse

from a2a_console.api.exceptions import MEDIA_TYPE, PROBLEMS, ProblemSerializer
from a2a_console.api.operators import RequiredRight
from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, list_accepted
from a2a_tasks.conf import conf

__all__ = [
    "DESCRIPTION",
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
#: Plurals without an s of their own, in the names of operations.
PLURALS = {"delivery": "deliveries", "waiting": "waiting"}
HEADERS = [
    OpenApiParameter("WWW-Authenticate", str, OpenApiParameter.HEADER, response=[401]),
    OpenApiParameter("Retry-After", int, OpenApiParameter.HEADER, response=[503]),
]


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
            return f"list_{PLURALS.get(noun, f'{noun}s')}"
        return f"{'get' if action == 'retrieve' else action}_{noun}"

    def get_override_parameters(self) -> list[Any]:
        """Return the serializer of the query, which changes have none of."""
        query = self.view.get_request_serializer_class() if self.method == "GET" else None
        return [query, *HEADERS] if query else HEADERS

    def get_request_serializer(self) -> Any:
        """Return the serializer of the body."""
        return self.view.get_request_serializer_class()

    def get_summary(self) -> str:
        """Return the first sentence of the description."""
        return self._read_doc().partition("\n")[0].rstrip(".")

    def get_description(self) -> str:  # type: ignore[override] # of DRF, with parameters
        """Return the docstring and the required right."""
        return f"{self._read_doc()}\n\n{_describe(self.view.get_required_right())}"

    def _read_doc(self) -> str:
        """Return the docstring of the action. Those of DRF have none: the class says what is listed or shown."""
        if text := inspect.getdoc(getattr(self.view, self.view.action)):
            return text
        is_list = self.view.action == "list"
        text = inspect.getdoc(type(self.view) if is_list else self.view.get_serializer_class())
        return f"{'List' if is_list else 'Show'} {text[0].lower()}{text[1:]}" if text else ""

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        """Add the errors, also to answers that a view describes by itself."""
        of_one, is_change = "{" in self.path, self.method != "GET"
        statuses = [400, 401, 403, *([404] if of_one else []), 500, 503]
        statuses += [413, 415] if is_change else []
        statuses += [409] if of_one and self.method == "POST" else []
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        for status in statuses:
            answer = OpenApiResponse(ProblemSerializer, PROBLEMS[status][1])
            found: Any = self._get_response_for_code(answer, str(status), [MEDIA_TYPE])  # type: ignore[no-untyped-call]
            responses[str(status)] = found
        return responses


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
        elif name != "Problem":
            component["required"] = sorted(component["properties"])
    return dict(json.loads(json.dumps(result), object_hook=_remove_marks))


def _remove_marks(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members without an internal mark of drf-spectacular."""
    return {name: value for name, value in members.items() if name != "x-spec-enum-id"}
