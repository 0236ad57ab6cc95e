"""The HTTP+JSON binding's routes and bodies (A2A 1.0 §5.3, §11): pure; each dialect has its own table of routes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from a2a_tasks.protocol.errors import A2AError, InvalidParams, MethodNotAllowed, MethodNotFound
from a2a_tasks.protocol.jsontext import write

__all__ = [
    "Match",
    "Route",
    "decode_verb",
    "error_body",
    "match",
    "merge",
    "query_params",
    "status_body",
    "subject",
]

#: Query names that are read as booleans; all others are text for the dialect to read.
_BOOLEANS = {"includeArtifacts", "include_artifacts"}
_WORDS = {"true": True, "false": False}
#: Names that no tenant can have, since routes begin with them.
RESERVED = {
    "v1",
    "tasks",
    "message:send",
    "message:stream",
    "extendedAgentCard",
    ".well-known",
    "a2a",
    "agent",
}
#: The verbs that may follow an id: a plain id must not end with one of them.
_CUSTOM = (":cancel", ":subscribe")
#: Such a verb with an encoded colon, as some clients send it.
_ENCODED_VERB = re.compile(r"%3[Aa](cancel|subscribe)\Z")
#: The snake_case of the names in paths, which bodies may use, too.
_ORIGINAL = {"taskId": "task_id", "configId": "config_id"}


@dataclass(frozen=True, slots=True)
class Route:
    """One row of a dialect's table: the verbs, a path with `{name}` for variable parts, and the operation."""

    verbs: tuple[str, ...]
    path: str
    operation: str


@dataclass(frozen=True, slots=True)
class Match:
    """A matching route: the operation and the parameters in its path (`id`, `taskId`, `tenant`)."""

    operation: str
    params: Mapping[str, str]


def _bind(pattern: str, segment: str) -> tuple[str, str] | None:
    """Return (name, value) for `{name}` or `{name}:verb`; ("", "") for a literal; None if it does not match.

    An encoded colon is part of an id, a plain one begins a verb (but see `match`).
    """
    if not pattern.startswith("{"):
        return ("", "") if pattern == unquote(segment) else None
    name, _, verb = pattern[1:].partition("}")
    value = segment.removesuffix(verb) if verb else segment
    fits = value and (value != segment if verb else not value.endswith(_CUSTOM))
    return (name, unquote(value)) if fits else None


def subject(segment: str) -> str:
    """Return the id in a segment that may end with a verb."""
    segment = _ENCODED_VERB.sub(r":\1", segment)
    verb = next((verb for verb in _CUSTOM if segment.endswith(verb)), "")
    return unquote(segment.removesuffix(verb))


def _params(pattern: str, segments: Sequence[str]) -> dict[str, str] | None:
    wanted = pattern.split("/")
    if len(wanted) != len(segments):
        return None
    bound = [_bind(*pair) for pair in zip(wanted, segments, strict=True)]
    return None if None in bound else dict(pair for pair in bound if pair and pair[0])


def _match_routes(
    routes: Sequence[Route], segments: Sequence[str]
) -> list[tuple[Route, dict[str, str]]]:
    found = [(route, _params(route.path, segments)) for route in routes]
    return [(route, params) for route, params in found if params is not None]


def match(
    routes: Sequence[Route], verb: str, segments: Sequence[str], *, tenants: bool = False
) -> Match:
    """Return the operation at a path of percent-encoded segments; with `tenants`, also below the name of a tenant.

    An id may end with `%3Acancel`; where no route takes it as an id, it is a verb. Raises MethodNotFound (no such route)
    or MethodNotAllowed (not with this verb).
    """
    found = _find(routes, verb, segments, tenants=tenants)
    if isinstance(found, MethodNotAllowed) and (plain := decode_verb(segments)) != segments:
        found = _find(routes, verb, plain, tenants=tenants)
    if isinstance(found, A2AError):
        raise found
    return found


def decode_verb(segments: Sequence[str]) -> list[str]:
    """Return the segments with a plain colon before a verb at their end: some clients encode it (`%3Acancel`)."""
    return [*segments[:-1], *(_ENCODED_VERB.sub(r":\1", last) for last in segments[-1:])]


def _find(
    routes: Sequence[Route], verb: str, segments: Sequence[str], *, tenants: bool
) -> Match | A2AError:
    fitting = _match_routes(routes, segments)
    if not fitting and tenants and len(segments) > 1 and unquote(segments[0]) not in RESERVED:
        tenant = {"tenant": unquote(segments[0])}
        fitting = [
            (route, params | tenant) for route, params in _match_routes(routes, segments[1:])
        ]
    if not fitting:
        return MethodNotFound("There is nothing at this path")
    for route, params in fitting:
        if verb in route.verbs:
            return Match(route.operation, params)
    allowed = dict.fromkeys(verb for route, _ in fitting for verb in route.verbs)
    return MethodNotAllowed(allow=", ".join(allowed))


def query_params(query: str) -> dict[str, Any]:
    """Return the parameters of a query string (§11.5). Raises InvalidParams for a bad boolean or invalid UTF-8."""
    params: dict[str, Any] = {}
    for name, text in _pairs(query):
        if name in _BOOLEANS:
            if text not in _WORDS:
                raise InvalidParams.field(name, "must be true or false")
            params[name] = _WORDS[text]
        else:
            params[name] = text
    params.pop("A2A-Version", None)
    return params


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise InvalidParams("The query must be percent-encoded UTF-8") from None


def merge(path: Mapping[str, str], other: Mapping[str, Any]) -> dict[str, Any]:
    """Join the parameters of path and body (or query). Raises InvalidParams where they contradict each other."""
    for name, value in path.items():
        others = (other.get(name), other.get(_ORIGINAL.get(name, name)))
        if any(text not in (None, "", value) for text in others):
            raise InvalidParams.field(name, "differs from the path")
    return {**other, **path}


def error_body(fault: A2AError) -> bytes:
    """Return the body of an error by A2A 1.0.1, for use where the dialect is not known."""
    return status_body(fault, fault.http_status, fault.grpc_status)


def status_body(fault: A2AError, http: int, grpc: str) -> bytes:
    """Return the google.rpc.Status body of an error, with its HTTP status and gRPC status name (A2A 1.0 §11.6).

    Released clients distinguish errors only by ErrorInfo, so errors with JSON-RPC's own codes have one, too.
    """
    status: dict[str, object] = {"code": http, "status": grpc, "message": fault.message}
    details = fault.details
    if fault.reason and fault.info not in details:
        details = [fault.info, *details]
    if details:
        status["details"] = details
    return write({"error": status})
