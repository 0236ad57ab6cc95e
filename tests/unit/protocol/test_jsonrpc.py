"""The JSON-RPC envelope: ids come back as they came, and whatever is wrong is told by its code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_tasks.protocol import errors, jsonrpc
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.jsontext import read, write

V10 = DIALECTS["v10"]


def envelope(**members: Any) -> bytes:
    """A request's body; members given as None stay null."""
    return write({"jsonrpc": "2.0", "id": 1, "method": "GetTask", **members})


def without(*names: str, **members: Any) -> bytes:
    """A request's body that lacks members."""
    document = json.loads(envelope(**members))
    return write({name: value for name, value in document.items() if name not in names})


def refusal(body: bytes) -> tuple[bytes, errors.A2AError]:
    """The id to answer to, and the error."""
    with pytest.raises(jsonrpc.BadCall) as caught:
        jsonrpc.read_call(body)
    return caught.value.id, caught.value.cause


class TestACall:
    def test_has_method_and_params(self) -> None:
        call = jsonrpc.read_call(envelope(params={"id": "t"}))
        assert (call.method, call.params) == ("GetTask", {"id": "t"})

    @pytest.mark.parametrize(
        "id_", [0, 1, -1, 2**63, "", "1", "a\x00é", 1.5, "null", None, "x" * 1000]
    )
    def test_keeps_its_id_with_its_type(self, id_: object) -> None:
        found = json.loads(jsonrpc.read_call(envelope(id=id_)).id)
        assert found == id_
        assert type(found) is type(id_)

    def test_without_id_is_answered_to_null(self) -> None:
        assert jsonrpc.read_call(without("id")).id == b"null"

    @pytest.mark.parametrize("body", [without("params"), envelope(params=None)])
    def test_without_params_has_empty_ones(self, body: bytes) -> None:
        assert jsonrpc.read_call(body).params == {}

    def test_may_have_members_nobody_knows(self) -> None:
        assert jsonrpc.read_call(envelope(trace="x")).method == "GetTask"

    @pytest.mark.parametrize("params", [[], [1], "x", 1, False, 0, ""])
    def test_leaves_params_of_another_type_to_the_dialect(self, params: Any) -> None:
        call = jsonrpc.read_call(envelope(params=params))
        with pytest.raises(errors.InvalidParams) as caught:
            V10.decode(call.method, call.params)
        assert caught.value.violations[0][0] == "params"


class TestWhatIsNoRequest:
    @pytest.mark.parametrize("batch", [[], [{}], [json.loads(envelope())], [1] * 10_000])
    def test_a_batch_is_an_invalid_request(self, batch: list[Any]) -> None:
        id_, cause = refusal(write(batch))
        assert id_ == b"null"
        assert isinstance(cause, errors.InvalidRequest)
        assert "Batch" in cause.message

    @pytest.mark.parametrize("document", [None, True, 0, 1.5, "x"])
    def test_anything_but_an_object_is_an_invalid_request(self, document: Any) -> None:
        id_, cause = refusal(write(document))
        assert id_ == b"null"
        assert isinstance(cause, errors.InvalidRequest)

    @pytest.mark.parametrize(
        "body",
        [
            without("jsonrpc"),
            envelope(jsonrpc="1.0"),
            envelope(jsonrpc=2.0),
            envelope(jsonrpc=None),
            without("method"),
            envelope(method=None),
            envelope(method=1),
            envelope(method=["GetTask"]),
            envelope(method={}),
            without("method", result={}),
            without("method", error={}),
        ],
    )
    def test_a_wrong_envelope_is_answered_to_its_id(self, body: bytes) -> None:
        id_, cause = refusal(body)
        assert id_ == b"1"
        assert isinstance(cause, errors.InvalidRequest)

    @pytest.mark.parametrize("id_", [True, False, [], [1], {}, {"a": 1}])
    def test_an_id_of_another_type_is_answered_to_null(self, id_: Any) -> None:
        answered, cause = refusal(envelope(id=id_))
        assert answered == b"null"
        assert isinstance(cause, errors.InvalidRequest)


class TestWhatIsNoJSON:
    @pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"\xff", b'{"id":1,"x":NaN}'])
    def test_is_a_parse_error_answered_to_null(self, body: bytes) -> None:
        id_, cause = refusal(body)
        assert id_ == b"null"
        assert isinstance(cause, errors.ParseError)


class TestRefusedJSON:
    @pytest.mark.parametrize("flaw", [b'"a":1,"a":1', b'"a":"\\ud800"', b'"a":1e999'])
    def test_is_invalid_params_answered_to_its_id(self, flaw: bytes) -> None:
        id_, cause = refusal(envelope()[:-1] + b"," + flaw + b"}")
        assert id_ == b"1"
        assert isinstance(cause, errors.InvalidParams)

    @pytest.mark.parametrize("id_", [b'"\\ud800"', b"1e999", b"18446744073709551616"])
    @pytest.mark.parametrize("flaw", [b'"a":1', b'"a":1,"a":1', b'"a":"\\udfff"'])
    def test_is_an_invalid_request_if_its_id_is_refused(self, flaw: bytes, id_: bytes) -> None:
        found, cause = refusal(b'{"id":' + id_ + b"," + flaw + b"}")
        assert found == b"null"
        assert isinstance(cause, errors.InvalidRequest)

    def test_may_be_too_deep_by_the_callers_limit(self) -> None:
        with pytest.raises(jsonrpc.BadCall):
            jsonrpc.read_call(envelope(params={"a": {"b": 1}}), max_depth=2)


class TestAResponse:
    def test_holds_the_id_and_the_result_as_encoded(self) -> None:
        assert jsonrpc.result(b'"x"', b'{"a":1}') == b'{"jsonrpc":"2.0","id":"x","result":{"a":1}}'

    def test_is_its_opening_the_result_and_a_brace(self) -> None:
        assert jsonrpc.begin_result(b"1") + b"2}" == jsonrpc.result(b"1", b"2")

    def test_with_an_error_has_no_result(self) -> None:
        body = read(jsonrpc.error(b"1", V10.error(errors.TaskNotFound(taskId="t"))))
        assert body.keys() == {"jsonrpc", "id", "error"}
        assert body["error"]["code"] == -32001
        assert body["error"]["message"] == "Task not found"
        (info,) = body["error"]["data"]
        assert info["reason"] == "TASK_NOT_FOUND"
        assert info["metadata"] == {"taskId": "t"}

    def test_of_a_plain_error_has_no_data(self) -> None:
        body = read(jsonrpc.error(b"null", V10.error(errors.ParseError())))
        assert body == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32700, "message": "Invalid JSON payload"},
        }
