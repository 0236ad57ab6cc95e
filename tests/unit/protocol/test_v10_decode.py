"""A2A 1.0 requests: what each operation reads, what it misses, and what it says about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from a2a_tasks.protocol import requests
from a2a_tasks.protocol.catalogue import OPERATIONS
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import InvalidParams, MethodNotFound
from a2a_tasks.protocol.requests import ListTasksRequest, SendMessageRequest
from a2a_tasks.protocol.values import UNSET, Message, Part, PushConfig, Role, TaskState
from tests.support.rows import rows

V10 = DIALECTS["v10"]
MESSAGE: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
#: The least each operation needs.
LEAST: dict[str, dict[str, Any]] = {
    "SendMessage": {"message": MESSAGE},
    "SendStreamingMessage": {"message": MESSAGE},
    "GetTask": {"id": "t"},
    "ListTasks": {},
    "CancelTask": {"id": "t"},
    "SubscribeToTask": {"id": "t"},
    "CreateTaskPushNotificationConfig": {"taskId": "t", "url": "https://example.com"},
    "GetTaskPushNotificationConfig": {"taskId": "t", "id": "c"},
    "ListTaskPushNotificationConfigs": {"taskId": "t"},
    "DeleteTaskPushNotificationConfig": {"taskId": "t", "id": "c"},
    "GetExtendedAgentCard": {},
}
#: operation, path of a required field.
REQUIRED = [
    ("SendMessage", "message"),
    ("SendStreamingMessage", "message"),
    ("GetTask", "id"),
    ("CancelTask", "id"),
    ("SubscribeToTask", "id"),
    *((operation, "taskId") for operation in LEAST if "Push" in operation),
]
#: params of ListTasks, the path that is wrong.
WRONG_LISTS: list[tuple[dict[str, Any], str]] = [
    ({"pageSize": 0}, "pageSize"),
    ({"pageSize": -1}, "pageSize"),
    ({"pageSize": 101}, "pageSize"),
    ({"pageSize": "x"}, "pageSize"),
    ({"pageSize": 2**40}, "pageSize"),
    ({"pageSize": True}, "pageSize"),
    ({"historyLength": -1}, "historyLength"),
    ({"historyLength": 1.5}, "historyLength"),
    ({"status": "working"}, "status"),
    ({"status": "TASK_STATE_NONE"}, "status"),
    ({"status": 9}, "status"),
    ({"status": -1}, "status"),
    ({"status": True}, "status"),
    ({"status": []}, "status"),
    ({"statusTimestampAfter": "yesterday"}, "statusTimestampAfter"),
    ({"statusTimestampAfter": 1}, "statusTimestampAfter"),
    ({"includeArtifacts": "true"}, "includeArtifacts"),
    ({"includeArtifacts": 1}, "includeArtifacts"),
    ({"contextId": 1}, "contextId"),
    ({"pageToken": {}}, "pageToken"),
    ({"tenant": []}, "tenant"),
]
#: a part, the path that is wrong (below message.parts[0]; empty = the part itself).
WRONG_PARTS: list[tuple[Any, str]] = [
    ({}, ""),
    ({"mediaType": "text/plain"}, ""),
    ({"text": "a", "url": "https://example.com"}, ""),
    ({"text": "a", "data": 1}, ""),
    ({"raw": "QQ==", "url": "https://example.com"}, ""),
    ({"text": "a", "raw": "QQ==", "url": "u", "data": {}}, ""),
    ({"text": None}, ""),
    ({"kind": "text"}, ""),
    ({"file": {"fileWithUri": "u"}}, ""),
    ("text", ""),
    (None, ""),
    ([], ""),
    ({"text": 1}, ".text"),
    ({"text": {}}, ".text"),
    ({"raw": "*"}, ".raw"),
    ({"raw": 1}, ".raw"),
    ({"url": False}, ".url"),
    ({"text": "a", "metadata": []}, ".metadata"),
    ({"text": "a", "filename": 1}, ".filename"),
    ({"text": "a", "mediaType": {}}, ".mediaType"),
]
#: changes to the message, the path that is wrong.
WRONG_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"messageId": None}, "message.messageId"),
    ({"messageId": ""}, "message.messageId"),
    ({"messageId": 1}, "message.messageId"),
    ({"messageId": "x" * 257}, "message.messageId"),
    ({"messageId": "a\x00"}, "message.messageId"),
    ({"role": None}, "message.role"),
    ({"role": "user"}, "message.role"),
    ({"role": "ROLE_UNSPECIFIED"}, "message.role"),
    ({"role": 0}, "message.role"),
    ({"role": 3}, "message.role"),
    ({"role": True}, "message.role"),
    ({"role": []}, "message.role"),
    ({"parts": None}, "message.parts"),
    ({"parts": []}, "message.parts"),
    ({"parts": {}}, "message.parts"),
    ({"parts": {"text": "x"}}, "message.parts"),
    ({"parts": "x"}, "message.parts"),
    ({"parts": 7}, "message.parts"),
    ({"parts": [{"text": "x"}] * 1001}, "message.parts"),
    ({"contextId": 1}, "message.contextId"),
    ({"contextId": "x" * 257}, "message.contextId"),
    ({"contextId": "a\x00"}, "message.contextId"),
    ({"taskId": []}, "message.taskId"),
    ({"metadata": "x"}, "message.metadata"),
    ({"extensions": "urn:x"}, "message.extensions"),
    ({"extensions": [1]}, "message.extensions"),
    ({"referenceTaskIds": {}}, "message.referenceTaskIds"),
]


def decoded(operation: str, params: Mapping[str, Any]) -> Any:
    """The request value."""
    return V10.decode(operation, params)


def send(message: dict[str, Any] | None = None, **members: Any) -> SendMessageRequest:
    """A SendMessage with changes to its message and members beside it."""
    request: SendMessageRequest = decoded(
        "SendMessage", {"message": {**MESSAGE, **(message or {})}, **members}
    )
    return request


def part(**members: Any) -> Part:
    """A part, as it is read."""
    return send({"parts": [members]}).message.parts[0]


def violations(operation: str, params: Any) -> list[str]:
    """The paths that are wrong."""
    with pytest.raises(InvalidParams) as caught:
        decoded(operation, params)
    assert all(description for _, description in caught.value.violations)
    return [path for path, _ in caught.value.violations]


class TestEveryOperation:
    @rows("operation", LEAST)
    def test_needs_no_more_than_this(self, operation: str) -> None:
        assert isinstance(decoded(operation, LEAST[operation]), requests.Request)

    @rows("operation", LEAST)
    def test_ignores_what_it_does_not_know(self, operation: str) -> None:
        """R-144."""
        noise = {"": "x", "unknown": {"a": [1]}, "Id": 1}
        least = LEAST[operation]
        assert decoded(operation, {**noise, **least, "": 1}).tenant == ""

    @rows("operation", LEAST)
    def test_reads_a_tenant(self, operation: str) -> None:
        assert decoded(operation, {**LEAST[operation], "tenant": "acme"}).tenant == "acme"

    @rows("operation", LEAST)
    @rows("tenant", [1, "x" * 257, "a\x00"])
    def test_refuses_a_tenant_that_can_be_none(self, operation: str, tenant: object) -> None:
        assert violations(operation, {**LEAST[operation], "tenant": tenant}) == ["tenant"]

    @rows("operation", LEAST)
    @rows("params", [[], "x", 1, True])
    def test_wants_an_object(self, operation: str, params: object) -> None:
        assert violations(operation, params) == ["params"]

    @rows(("operation", "path"), REQUIRED)
    @rows("value", ["absent", None, ""])
    def test_names_what_it_misses(self, operation: str, path: str, value: str | None) -> None:
        """R-143, R-187."""
        params = {key: member for key, member in LEAST[operation].items() if key != path}
        if value != "absent":
            params[path] = value
        assert violations(operation, params) == [path]

    def test_is_in_this_list(self) -> None:
        assert set(LEAST) == {operation.name for operation in OPERATIONS}

    @rows("name", ["", "getTask", "message/send", "tasks/get", "GetTask "])
    def test_is_called_by_its_very_name(self, name: str) -> None:
        with pytest.raises(MethodNotFound):
            decoded(name, {})

    @rows("params", [{}, {"": "x"}, {"message": {"kind": "message"}}])
    def test_that_sends_says_everything_that_is_missing(self, params: dict[str, Any]) -> None:
        found = violations("SendMessage", params)
        whole = ["message.role", "message.messageId", "message.parts"]
        assert sorted(found) == (sorted(whole) if "message" in params else ["message"])


class TestAMessage:
    def test_is_read_with_all_its_members(self) -> None:
        message = send(
            {
                "contextId": "c",
                "taskId": "t",
                "role": "ROLE_AGENT",
                "metadata": {"k": [1, None]},
                "extensions": ["urn:x"],
                "referenceTaskIds": ["r1", "r2"],
            }
        ).message
        assert message == Message(
            message_id="m",
            context_id="c",
            task_id="t",
            role=Role.AGENT,
            parts=(Part(text="hi"),),
            metadata={"k": [1, None]},
            extensions=("urn:x",),
            reference_task_ids=("r1", "r2"),
        )

    def test_is_read_in_snake_case(self) -> None:
        snake = {
            "message_id": "m",
            "role": "ROLE_USER",
            "context_id": "c",
            "task_id": "t",
            "reference_task_ids": ["r"],
            "parts": [{"text": "x", "media_type": "text/plain"}],
        }
        message = decoded("SendMessage", {"message": snake}).message
        assert (message.message_id, message.context_id, message.task_id) == ("m", "c", "t")
        assert message.reference_task_ids == ("r",)
        assert message.parts[0].media_type == "text/plain"

    @rows(
        ("role", "meant"),
        [("ROLE_USER", Role.USER), ("ROLE_AGENT", Role.AGENT), (1, Role.USER), (2, Role.AGENT)],
    )
    def test_has_a_role_by_name_or_number(self, role: object, meant: Role) -> None:
        assert send({"role": role}).message.role is meant

    @rows(("change", "path"), WRONG_MESSAGES)
    def test_that_is_wrong_is_told_where(self, change: dict[str, Any], path: str) -> None:
        assert violations("SendMessage", {"message": {**MESSAGE, **change}}) == [path]

    @rows("message", ["x", 1, [], [MESSAGE], True])
    def test_is_an_object(self, message: object) -> None:
        assert violations("SendMessage", {"message": message}) == ["message"]

    def test_may_have_as_many_parts_and_letters_as_allowed(self) -> None:
        message = send({"messageId": "x" * 256, "parts": [{"text": "x"}] * 1000}).message
        assert len(message.parts) == 1000

    def test_takes_empty_ids_for_absent_ones(self) -> None:
        message = send({"contextId": "", "taskId": ""}).message
        assert (message.context_id, message.task_id) == (None, None)

    def test_keeps_nul_in_text(self) -> None:
        assert part(text="a\x00b").text == "a\x00b"


class TestAPart:
    @rows("text", ["", "x", "\U0001f600", "null"])
    def test_is_text(self, text: str) -> None:
        assert part(text=text) == Part(text=text)

    @rows("raw", ["+/8=", "-_8=", "+/8", "-_8"])
    def test_is_bytes_in_any_base64_and_kept_in_the_standard_one(self, raw: str) -> None:
        assert part(raw=raw) == Part(raw="+/8=")

    def test_is_a_link(self) -> None:
        url = "https://example.com/x"
        assert part(url=url, filename="x", mediaType="image/png") == Part(
            url=url, filename="x", media_type="image/png"
        )

    @rows("value", [{}, {"a": 1}, [], [1, "x", None], "x", "", 0, 1.5, False])
    def test_is_any_json_value(self, value: Any) -> None:
        assert part(data=value) == Part(data=value)

    def test_with_null_data_has_null_for_data(self) -> None:
        found = part(data=None)
        assert found.data is None
        assert found.text is UNSET

    def test_may_spell_out_that_the_others_are_absent(self) -> None:
        assert part(text="x", raw=None, url=None, data=None) == Part(text="x")

    def test_may_hold_an_object_called_data(self) -> None:
        assert part(data={"data": {"a": 1}}) == Part(data={"data": {"a": 1}})

    def test_has_metadata(self) -> None:
        assert part(text="x", metadata={"a": {"b": None}}).metadata == {"a": {"b": None}}

    @rows(("wrong", "path"), WRONG_PARTS)
    def test_that_is_wrong_is_told_where(self, wrong: Any, path: str) -> None:
        """R-145."""
        message = {**MESSAGE, "parts": [wrong]}
        assert violations("SendMessage", {"message": message}) == [f"message.parts[0]{path}"]

    def test_is_counted_from_zero(self) -> None:
        message = {**MESSAGE, "parts": [{"text": "x"}, {}, {"text": "x"}, {"raw": "*"}]}
        assert violations("SendMessage", {"message": message}) == [
            "message.parts[1]",
            "message.parts[3].raw",
        ]


class TestTheConfiguration:
    def test_has_defaults(self) -> None:
        """R-011: blocking is the default; R-148: an absent length is not 0."""
        cases: list[dict[str, Any]] = [{}, {"configuration": None}, {"configuration": {}}]
        for members in cases:
            request = send(None, **members)
            assert request.return_immediately is False
            assert request.history_length is None
            assert request.accepted_output_modes == ()
            assert request.push_config is None

    def test_is_read_with_all_its_members(self) -> None:
        push = {"url": "https://example.com"}
        configuration = {
            "acceptedOutputModes": ["text/plain", "image/*"],
            "historyLength": 0,
            "returnImmediately": True,
            "taskPushNotificationConfig": push,
        }
        request = send(None, configuration=configuration, metadata={"a": 1})
        assert request.accepted_output_modes == ("text/plain", "image/*")
        assert request.history_length == 0
        assert request.return_immediately is True
        assert request.push_config == PushConfig(
            url="https://example.com",
            dialect="v10",
            path="configuration.taskPushNotificationConfig",
        )
        assert request.metadata == {"a": 1}

    @rows("name", ["taskPushNotificationConfig", "pushNotificationConfig"])
    def test_with_an_empty_push_config_misses_its_url(self, name: str) -> None:
        with pytest.raises(InvalidParams) as caught:
            send(None, configuration={name: {}})
        assert caught.value.violations == ((f"configuration.{name}.url", "is required"),)

    @rows(
        ("configuration", "at_once"),
        [
            ({"blocking": False}, True),
            ({"blocking": True}, False),
            ({"blocking": None}, False),
            ({"blocking": False, "returnImmediately": False}, False),
            ({"blocking": True, "returnImmediately": True}, True),
            ({"return_immediately": True}, True),
        ],
    )
    def test_takes_the_word_of_the_release_candidate(
        self, configuration: dict[str, Any], at_once: bool
    ) -> None:
        assert send(None, configuration=configuration).return_immediately is at_once

    def test_takes_the_push_config_of_the_release_candidate(self) -> None:
        push = {"url": "u"}
        request = send(None, configuration={"pushNotificationConfig": push})
        assert request.push_config == PushConfig(
            url="u", dialect="v10", path="configuration.pushNotificationConfig"
        )

    @rows(
        ("configuration", "path"),
        [
            ([], "configuration"),
            ("x", "configuration"),
            ({"historyLength": -1}, "configuration.historyLength"),
            ({"historyLength": "x"}, "configuration.historyLength"),
            ({"returnImmediately": "true"}, "configuration.returnImmediately"),
            ({"returnImmediately": 1}, "configuration.returnImmediately"),
            ({"blocking": 0}, "configuration.blocking"),
            ({"acceptedOutputModes": "text/plain"}, "configuration.acceptedOutputModes"),
            ({"taskPushNotificationConfig": "u"}, "configuration.taskPushNotificationConfig"),
        ],
    )
    def test_that_is_wrong_is_told_where(self, configuration: Any, path: str) -> None:
        params = {"message": MESSAGE, "configuration": configuration}
        assert violations("SendMessage", params) == [path]

    def test_beside_it_metadata_is_an_object(self) -> None:
        assert violations("SendMessage", {"message": MESSAGE, "metadata": []}) == ["metadata"]


class TestListTasks:
    def asked(self, **params: Any) -> ListTasksRequest:
        """The request value."""
        request: ListTasksRequest = decoded("ListTasks", params)
        return request

    def test_has_defaults(self) -> None:
        """R-024."""
        assert self.asked() == ListTasksRequest(page_size=50, history_length=0)

    def test_is_read_with_all_its_members(self) -> None:
        assert self.asked(
            contextId="c",
            status="TASK_STATE_WORKING",
            pageSize=1,
            pageToken="t",
            historyLength=2,
            statusTimestampAfter="2026-01-01T01:00:00+01:00",
            includeArtifacts=True,
        ) == ListTasksRequest(
            context_id="c",
            status=TaskState.WORKING,
            page_size=1,
            page_token="t",
            history_length=2,
            status_timestamp_after="2026-01-01T00:00:00.000Z",
            include_artifacts=True,
        )

    @rows("size", [1, 100, "100", 50.0])
    def test_takes_pages_from_1_to_100(self, size: Any) -> None:
        assert self.asked(page_size=size).page_size == int(size)

    @rows("state", list(TaskState))
    def test_takes_a_status_by_name(self, state: TaskState) -> None:
        assert self.asked(status=state.value).status is state

    @rows(
        ("number", "state"),
        [
            (1, TaskState.SUBMITTED),
            (2, TaskState.WORKING),
            (3, TaskState.COMPLETED),
            (4, TaskState.FAILED),
            (5, TaskState.CANCELED),
            (6, TaskState.INPUT_REQUIRED),
            (7, TaskState.REJECTED),
            (8, TaskState.AUTH_REQUIRED),
        ],
    )
    def test_takes_a_status_by_the_number_of_the_proto(self, number: int, state: TaskState) -> None:
        assert self.asked(status=number).status is state

    @rows("status", ["TASK_STATE_UNSPECIFIED", 0, None])
    def test_takes_an_unspecified_status_for_any(self, status: Any) -> None:
        assert self.asked(status=status).status is None

    def test_takes_the_other_spelling_of_canceled(self) -> None:
        assert self.asked(status="TASK_STATE_CANCELLED").status is TaskState.CANCELED

    @rows(("params", "path"), WRONG_LISTS)
    def test_that_is_wrong_is_told_where(self, params: dict[str, Any], path: str) -> None:
        assert violations("ListTasks", params) == [path]

    def test_tells_all_that_is_wrong_at_once(self) -> None:
        wrong = {"pageSize": 0, "historyLength": -1, "status": "x"}
        assert sorted(violations("ListTasks", wrong)) == ["historyLength", "pageSize", "status"]


class TestGetTask:
    @rows(("said", "length"), [(0, 0), ("2", 2), (None, None)])
    def test_tells_0_from_absent(self, said: Any, length: int | None) -> None:
        """R-021, R-148."""
        assert decoded("GetTask", {"id": "t", "historyLength": said}).history_length == length

    def test_takes_any_id(self) -> None:
        assert decoded("GetTask", {"id": "a/b:c\x00" + "x" * 1000}).id.startswith("a/b:c")

    @rows("id_", [1, [], {}, True])
    def test_wants_text_for_an_id(self, id_: Any) -> None:
        assert violations("GetTask", {"id": id_}) == ["id"]

    def test_counts_from_zero(self) -> None:
        assert violations("GetTask", {"id": "t", "historyLength": -1}) == ["historyLength"]


class TestCancelTask:
    def test_reads_metadata(self) -> None:
        assert decoded("CancelTask", {"id": "t", "metadata": {"why": 1}}).metadata == {"why": 1}

    def test_wants_an_object_for_it(self) -> None:
        assert violations("CancelTask", {"id": "t", "metadata": "x"}) == ["metadata"]
