"""The eleven operations."""

from __future__ import annotations

from a2a_project.operations import TABLE
from a2a_tasks.protocol.catalogue import BY_NAME, OPERATIONS
from a2a_tasks.protocol.dialects import DIALECTS

ELEVEN = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
]


class TestTheCatalogue:
    def test_has_the_eleven_operations(self) -> None:
        assert [operation.name for operation in OPERATIONS] == ELEVEN

    def test_finds_each_by_its_name(self) -> None:
        assert all(BY_NAME[operation.name] is operation for operation in OPERATIONS)

    def test_finds_the_public_card_too_which_is_an_operation_in_seed_0_only(self) -> None:
        assert set(BY_NAME) == {*ELEVEN, "GetAgentCard"}

    def test_is_the_list_of_the_table(self) -> None:
        assert set(TABLE) == set(BY_NAME)

    def test_is_the_list_of_the_newest_dialect_and_has_all_of_the_others(self) -> None:
        assert list(DIALECTS["v10"].methods) == ELEVEN
        asked = {name for dialect in DIALECTS.values() for name in dialect.methods.values()}
        assert asked == set(BY_NAME)

    def test_says_which_stream(self) -> None:
        streams = {operation.name for operation in OPERATIONS if operation.streams}
        assert streams == {"SendStreamingMessage", "SubscribeToTask"}

    def test_says_what_the_card_must_declare(self) -> None:
        needs = {operation.name: operation.needs for operation in OPERATIONS if operation.needs}
        push = [name for name in ELEVEN if "Push" in name]
        assert needs == {
            "SendStreamingMessage": "streaming",
            "SubscribeToTask": "streaming",
            **dict.fromkeys(push, "push_notifications"),
        }

    def test_has_no_two_operations_at_one_place(self) -> None:
        assert len({(operation.verb, operation.path) for operation in OPERATIONS}) == len(ELEVEN)
