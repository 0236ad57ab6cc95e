"""Every error, with the face it has on every wire (A2A 1.0.1 §5.4; dialects §6.3)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from a2a_tasks.protocol import errors
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import A2AError, ProtocolError

#: name: JSON-RPC code, HTTP status, gRPC status, reason.
NINE = {
    "TaskNotFound": (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
    "TaskNotCancelable": (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
    "PushNotificationNotSupported": (
        -32003,
        400,
        "FAILED_PRECONDITION",
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ),
    "UnsupportedOperation": (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    "ContentTypeNotSupported": (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    "InvalidAgentResponse": (-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
    "ExtendedAgentCardNotConfigured": (
        -32007,
        400,
        "FAILED_PRECONDITION",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    "ExtensionSupportRequired": (-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
    "VersionNotSupported": (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
}
#: Those of the envelopes: code, HTTP status, gRPC status.
OTHERS = {
    "ParseError": (-32700, 400, "INVALID_ARGUMENT"),
    "InvalidRequest": (-32600, 400, "INVALID_ARGUMENT"),
    "MethodNotFound": (-32601, 404, "NOT_FOUND"),
    "InvalidParams": (-32602, 400, "INVALID_ARGUMENT"),
    "MethodNotAllowed": (-32600, 405, "UNIMPLEMENTED"),
    "TooLarge": (-32600, 413, "INVALID_ARGUMENT"),
    "Unauthenticated": (-32000, 401, "UNAUTHENTICATED"),
    "Forbidden": (-32000, 403, "PERMISSION_DENIED"),
    "RateLimited": (-32000, 429, "RESOURCE_EXHAUSTED"),
    "Overloaded": (-32000, 503, "UNAVAILABLE"),
    "InternalError": (-32603, 500, "INTERNAL"),
}
#: This host's own: known by their reason, also to JSON-RPC.
HOSTS = {"IdempotencyConflict": (-32602, 422, "INVALID_ARGUMENT")}
#: Errors with the face of another, which a dialect calls something else.
FINER = {
    **dict.fromkeys(("AgentOff", "TaskNotWaiting", "TaskTaken"), "UnsupportedOperation"),
    "ContextMismatch": "InvalidParams",
    "ExtendedCardUndeclared": "UnsupportedOperation",
    "InsufficientScope": "Forbidden",
    "WrongCredentials": "Unauthenticated",
    "TaskEnded": "UnsupportedOperation",
}
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def descendants(cls: type[A2AError]) -> Iterable[type[A2AError]]:
    """Every class below."""
    for sub in cls.__subclasses__():
        yield sub
        yield from descendants(sub)


def body_of(fault: A2AError) -> dict[str, Any]:
    """What A2A 1.0.1 sends of an error over HTTP+JSON."""
    refusal = DIALECTS["v10"].refusal(fault)
    assert refusal.status == fault.http_status
    body: dict[str, Any] = json.loads(refusal.body)
    return body


def made(name: str) -> A2AError:
    """An error of that class."""
    error: A2AError = getattr(errors, name)()
    return error


@pytest.mark.parametrize("name", NINE)
class TestAnErrorOfTheProtocol:
    def test_has_the_codes_of_the_table(self, name: str) -> None:
        error = made(name)
        assert (error.code, error.http_status, error.grpc_status, error.reason) == NINE[name]
        assert isinstance(error, ProtocolError)

    def test_carries_one_error_info(self, name: str) -> None:
        cls = getattr(errors, name)
        assert cls("so", taskId="t").details == [
            {
                "@type": ERROR_INFO,
                "reason": NINE[name][3],
                "domain": "a2a-protocol.org",
                "metadata": {"taskId": "t"},
            }
        ]

    def test_has_a_message_of_its_own(self, name: str) -> None:
        assert made(name).message == getattr(errors, name).title != A2AError.title
        assert getattr(errors, name)("so").message == "so"

    def test_is_a_google_status_over_http(self, name: str) -> None:
        """R-183."""
        body = body_of(made(name))["error"]
        _, http, grpc, reason = NINE[name]
        assert (body["code"], body["status"]) == (http, grpc)
        assert [detail["reason"] for detail in body["details"]] == [reason]


@pytest.mark.parametrize("name", OTHERS)
class TestAnErrorOfTheEnvelope:
    def test_has_the_codes_of_the_table(self, name: str) -> None:
        error = made(name)
        assert (error.code, error.http_status, error.grpc_status) == OTHERS[name]
        assert not isinstance(error, ProtocolError)

    def test_has_no_details_in_json_rpc(self, name: str) -> None:
        assert made(name).details == []

    def test_is_a_google_status_over_http(self, name: str) -> None:
        body = body_of(made(name))["error"]
        _, http, grpc = OTHERS[name]
        assert (body["code"], body["status"]) == (http, grpc)
        assert body["message"] == made(name).message
        assert all(detail["@type"] == ERROR_INFO for detail in body.get("details", []))


@pytest.mark.parametrize("name", HOSTS)
class TestAnErrorOfThisHost:
    def test_has_the_codes_of_the_table(self, name: str) -> None:
        error = made(name)
        assert (error.code, error.http_status, error.grpc_status) == HOSTS[name]
        assert not isinstance(error, ProtocolError)

    @pytest.mark.parametrize("code", DIALECTS)
    def test_tells_its_reason_in_every_dialect(self, name: str, code: str) -> None:
        error = made(name)
        assert DIALECTS[code].error(error)["code"] == error.code
        assert error.reason in str(DIALECTS[code].error(error)["data"])
        assert error.reason in DIALECTS[code].rest.refusal(error).body.decode()
        assert DIALECTS[code].rest.refusal(error).status == error.http_status


class TestTheTree:
    def test_has_no_class_besides_these(self) -> None:
        here = {cls.__name__ for cls in descendants(A2AError) if cls.__module__ == errors.__name__}
        assert here == {*NINE, *OTHERS, *HOSTS, *FINER, "RequestError", "ProtocolError"}

    @pytest.mark.parametrize(("finer", "name"), FINER.items())
    def test_gives_the_finer_ones_the_face_of_theirs(self, finer: str, name: str) -> None:
        fine, plain = made(finer), made(name)
        assert isinstance(fine, type(plain))
        assert body_of(fine) == body_of(plain)
        assert DIALECTS["v10"].error(fine) == DIALECTS["v10"].error(plain)

    def test_has_one_code_for_each_error_of_the_protocol(self) -> None:
        codes = [row[0] for row in NINE.values()]
        assert sorted(codes, reverse=True) == list(range(-32001, -32010, -1))

    def test_is_drawn_in_the_docstring(self) -> None:
        assert errors.__doc__ is not None
        for name, (code, http, *_) in {**NINE, **OTHERS, **HOSTS}.items():
            line = next(line for line in errors.__doc__.splitlines() if f" {name} " in line)
            assert str(code) in line
            assert str(http) in line


class TestInvalidParams:
    def test_names_each_bad_field(self) -> None:
        error = errors.InvalidParams(violations=[("a.b", "is required"), ("c", "is wrong")])
        assert error.details == [
            {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [
                    {"field": "a.b", "description": "is required"},
                    {"field": "c", "description": "is wrong"},
                ],
            }
        ]

    def test_over_http_says_both_who_it_is_and_what_is_wrong(self) -> None:
        body = body_of(errors.InvalidParams.field("a", "is required"))
        info, bad = body["error"]["details"]
        assert info["reason"] == "INVALID_PARAMS"
        assert bad["fieldViolations"] == [{"field": "a", "description": "is required"}]
