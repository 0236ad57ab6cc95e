"""The HTTP+JSON binding's routes and bodies (A2A 1.0 §5.3, §11): pure, driven by the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from a2a_tasks.protocol.catalogue import OPERATIONS, Operation
from a2a_tasks.protocol.errors import A2AError, InvalidParams, MethodNotAllowed, MethodNotFound
from a2a_tasks.protocol.jsontext import write

__all__ = ["Match", "error_body", "match", "merge", "query_params"]

#: Query names that are read as booleans and lists; everything else is text for the dialect to read.
_BOOLEANS = {"includeArtifacts", "include_artifacts"}
_WORDS = {"true": True, "false": False}
#: A tenant can never have one of these names: they begin routes (`dialects` §1.1).
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
#: The verbs that follow an id: a plain id does not end like one, else it may be anything.
_CUSTOM = tuple(o.path.partition("}")[2] for o in OPERATIONS if "}:" in o.path)
#: The snake_case of the names in paths, which bodies may use too.
_ORIGINAL = {"taskId": "task_id"}
#: SubscribeToTask: POST by the text, GET by the proto; both are served.
_ALSO_GET = {"SubscribeToTask"}


@dataclass(frozen=True, slots=True)
class Match:
    """A route that fits: the operation and what its path says (`id`, `taskId`, `tenant`)."""

    operation: Operation
    params: Mapping[str, str]


def _bind(pattern: str, segment: str) -> tuple[str, str] | None:
    """(name, value) for `{name}` or `{name}:verb`; ("", "") for a literal; None if it does not fit."""
    if not pattern.startswith("{"):
        return ("", "") if pattern == segment else None
    name, _, verb = pattern[1:].partition("}")
    value = segment.removesuffix(verb) if verb else segment
    fits = value and (value != segment if verb else not value.endswith(_CUSTOM))
    return (name, value) if fits else None


def _params(pattern: str, segments: Sequence[str]) -> dict[str, str] | None:
    wanted = pattern.split("/")
    if len(wanted) != len(segments):
        return None
    bound = [_bind(*pair) for pair in zip(wanted, segments, strict=True)]
    return None if None in bound else dict(pair for pair in bound if pair and pair[0])


def _verbs(operation: Operation) -> tuple[str, ...]:
    return (operation.verb, "GET") if operation.name in _ALSO_GET else (operation.verb,)


def _fitting(segments: Sequence[str]) -> list[Match]:
    found = [(operation, _params(operation.path, segments)) for operation in OPERATIONS]
    return [Match(operation, params) for operation, params in found if params is not None]


def match(verb: str, segments: Sequence[str]) -> Match:
    """The operation at a path below the agent, with or without a tenant before it.

    Raises MethodNotFound (no such route) or MethodNotAllowed (not with this verb).
    """
    fitting = _fitting(segments)
    if not fitting and len(segments) > 1 and segments[0] not in RESERVED:
        tenant = {"tenant": segments[0]}
        fitting = [Match(m.operation, {**m.params, **tenant}) for m in _fitting(segments[1:])]
    if not fitting:
        raise MethodNotFound("There is nothing at this path")
    for found in fitting:
        if verb in _verbs(found.operation):
            return found
    raise MethodNotAllowed(allow=", ".join(v for m in fitting for v in _verbs(m.operation)))


def query_params(query: str) -> dict[str, Any]:
    """The parameters of a query string (§11.5). Raises InvalidParams for a bad boolean or what is not UTF-8."""
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
    """Path and body (or query) together. Raises InvalidParams where they name different things."""
    for name, value in path.items():
        said = (other.get(name), other.get(_ORIGINAL.get(name, name)))
        if any(text not in (None, "", value) for text in said):
            raise InvalidParams.field(name, "differs from the path")
    return {**other, **path}


def error_body(fault: A2AError) -> bytes:
    """The google.rpc.Status body of an error (§11.6).

    Released clients tell errors apart by ErrorInfo alone, so those of JSON-RPC's own codes carry one too.
    """
    status: dict[str, object] = {
        "code": fault.http_status,
        "status": fault.grpc_status,
        "message": fault.message,
    }
    details = fault.details
    if fault.reason and fault.info not in details:
        details = [fault.info, *details]
    if details:
        status["details"] = details
    return write({"error": status})
