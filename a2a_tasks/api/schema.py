"""What OpenAPI says beyond what the routes say themselves: the ways in, and that shapes are exact."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension

from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, accepted
from a2a_tasks.conf import conf

__all__ = ["DoorScheme", "exact"]

SESSION = "session"
#: Shapes of which not all members are always there.
LOOSE = {"Problem"}


class DoorScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The door, to drf-spectacular: those schemes that the host accepts, and the session of the admin."""

    target_class = "a2a_tasks.api.door.Door"

    @property
    def name(self) -> list[str]:  # type: ignore[override]
        """Each scheme by the name that it has in cards."""
        return [*accepted(None), SESSION]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """One of them will do."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        """Each scheme as OpenAPI has it."""
        known = {
            BEARER: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            API_KEY: {"type": "apiKey", "in": "header", "name": str(conf.API_KEY_HEADER)},
            BASIC: {"type": "http", "scheme": "basic"},
            MUTUAL_TLS: {"type": "mutualTLS"},
            SESSION: {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME},
        }
        return [known[name] for name in self.name]


def exact(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's hook: answers have all their members, bodies no others."""
    for name, shape in result["components"]["schemas"].items():
        if name.endswith("Request"):
            shape["additionalProperties"] = False
        elif name not in LOOSE:
            shape["required"] = sorted(shape["properties"])
    _forget_marks(result)
    return result


def _forget_marks(found: Any) -> None:
    """Take away what drf-spectacular keeps for itself."""
    if isinstance(found, dict):
        found.pop("x-spec-enum-id", None)
    for below in found.values() if isinstance(found, dict) else found:
        if isinstance(below, dict | list):
            _forget_marks(below)
