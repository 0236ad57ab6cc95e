"""Routes, queries and bodies of HTTP+JSON, as pure functions."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.protocol import rest
from a2a_tasks.protocol.catalogue import OPERATIONS
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import InvalidParams, MethodNotAllowed, MethodNotFound
from tests.support.rows import rows

Table = dict[tuple[str, str], tuple[str, dict[str, str]]]

#: (verb, path): (operation, what the path says). Written out by hand (dialects §3.5).
ROUTES: Table = {
    ("POST", "message:send"): ("SendMessage", {}),
    ("POST", "message:stream"): ("SendStreamingMessage", {}),
    ("GET", "tasks/T"): ("GetTask", {"id": "T"}),
    ("GET", "tasks"): ("ListTasks", {}),
    ("POST", "tasks/T:cancel"): ("CancelTask", {"id": "T"}),
    ("POST", "tasks/T:subscribe"): ("SubscribeToTask", {"id": "T"}),
    ("GET", "tasks/T:subscribe"): ("SubscribeToTask", {"id": "T"}),
    ("POST", "tasks/T/pushNotificationConfigs"): (
        "CreateTaskPushNotificationConfig",
        {"taskId": "T"},
    ),
    ("GET", "tasks/T/pushNotificationConfigs/C"): (
        "GetTaskPushNotificationConfig",
        {"taskId": "T", "id": "C"},
    ),
    ("GET", "tasks/T/pushNotificationConfigs"): (
        "ListTaskPushNotificationConfigs",
        {"taskId": "T"},
    ),
    ("DELETE", "tasks/T/pushNotificationConfigs/C"): (
        "DeleteTaskPushNotificationConfig",
        {"taskId": "T", "id": "C"},
    ),
    ("GET", "extendedAgentCard"): ("GetExtendedAgentCard", {}),
}
#: What 0.2, 0.3 and the draft have in common (dialects §3.4).
BEFORE: Table = {
    ("POST", "v1/message:send"): ("SendMessage", {}),
    ("POST", "v1/message:stream"): ("SendStreamingMessage", {}),
    ("GET", "v1/tasks/T"): ("GetTask", {"id": "T"}),
    ("GET", "v1/tasks"): ("ListTasks", {}),
    ("POST", "v1/tasks/T:cancel"): ("CancelTask", {"id": "T"}),
    ("POST", "v1/tasks/T:subscribe"): ("SubscribeToTask", {"id": "T"}),
    ("GET", "v1/tasks/T:subscribe"): ("SubscribeToTask", {"id": "T"}),
    ("POST", "v1/tasks/T/pushNotificationConfigs"): (
        "CreateTaskPushNotificationConfig",
        {"taskId": "T"},
    ),
    ("GET", "v1/tasks/T/pushNotificationConfigs/C"): (
        "GetTaskPushNotificationConfig",
        {"taskId": "T", "configId": "C"},
    ),
    ("GET", "v1/tasks/T/pushNotificationConfigs"): (
        "ListTaskPushNotificationConfigs",
        {"taskId": "T"},
    ),
    ("DELETE", "v1/tasks/T/pushNotificationConfigs/C"): (
        "DeleteTaskPushNotificationConfig",
        {"taskId": "T", "configId": "C"},
    ),
}
V03: Table = {
    **BEFORE,
    ("GET", "v1/card"): ("GetExtendedAgentCard", {}),
    ("GET", "v1/agent/authenticatedExtendedCard"): ("GetExtendedAgentCard", {}),
}
TABLES: dict[str, Table] = {
    "v02": {**V03, ("GET", "agent/authenticatedExtendedCard"): ("GetExtendedAgentCard", {})},
    "v03": V03,
    "dr": {
        **BEFORE,
        ("POST", "v1/tasks/list"): ("ListTasks", {}),
        ("GET", "v1/tasks/list"): ("ListTasks", {}),
        ("GET", "v1/extendedAgentCard"): ("GetExtendedAgentCard", {}),
    },
    "v10": ROUTES,
}
#: code, verb, path of every route there is.
EVERY = [(code, *at) for code, table in TABLES.items() for at in table]
PATHS = sorted({path for _, path in ROUTES})
VERBS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", ""]


def found(verb: str, *segments: str, code: str = "v10") -> tuple[str, dict[str, str]]:
    """The operation's name and what the path says, by the routes of a dialect."""
    dialect = DIALECTS[code].rest
    match = rest.match(dialect.routes, verb, segments, tenants=dialect.has_tenants)
    return match.operation, dict(match.params)


class TestARoute:
    @rows(("code", "verb", "path"), EVERY)
    def test_leads_to_its_operation(self, code: str, verb: str, path: str) -> None:
        assert found(verb, *path.split("/"), code=code) == TABLES[code][verb, path]

    def test_is_in_a_table_here(self) -> None:
        for code, dialect in DIALECTS.items():
            ways = sum(len(route.verbs) for route in dialect.rest.routes)
            assert ways == len(TABLES.get(code, {})), code

    @rows(("verb", "path"), ROUTES)
    def test_may_have_a_tenant_before_it(self, verb: str, path: str) -> None:
        name, params = ROUTES[verb, path]
        assert found(verb, "acme", *path.split("/")) == (name, {**params, "tenant": "acme"})

    @rows(("verb", "path"), BEFORE)
    @rows("code", ["v02", "v03", "dr"])
    def test_has_no_tenant_before_it_before_1_0(self, code: str, verb: str, path: str) -> None:
        with pytest.raises(MethodNotFound):
            found(verb, "acme", *path.split("/"), code=code)

    def test_exists_for_every_operation(self) -> None:
        names = {operation.name for operation in OPERATIONS}
        for table in TABLES.values():
            assert {name for name, _ in table.values()} == names

    @rows("path", PATHS)
    @rows("tenant", [[], ["acme"]])
    def test_says_which_verbs_it_has(self, path: str, tenant: list[str]) -> None:
        allowed = {verb for verb, known in ROUTES if known == path}
        for verb in set(VERBS) - allowed:
            with pytest.raises(MethodNotAllowed) as caught:
                found(verb, *tenant, *path.split("/"))
            assert set(caught.value.metadata["allow"].split(", ")) == allowed

    @rows("id_", ["a/b", "a b", "é", "a:b", "urn:x:1", "..", "%", "a?b#c", "tasks"])
    def test_takes_ids_as_they_are(self, id_: str) -> None:
        assert found("GET", "tasks", id_) == ("GetTask", {"id": id_})
        assert found("POST", "tasks", f"{id_}:cancel") == ("CancelTask", {"id": id_})
        assert found("POST", "tasks", f"{id_}:subscribe") == ("SubscribeToTask", {"id": id_})
        assert found("DELETE", "tasks", id_, "pushNotificationConfigs", f"{id_}.c") == (
            "DeleteTaskPushNotificationConfig",
            {"taskId": id_, "id": f"{id_}.c"},
        )

    @rows("tenant", ["acme", "a/b", "a:b", "x.y", "é", "Tasks"])
    def test_takes_tenants_as_they_are(self, tenant: str) -> None:
        assert found("GET", tenant, "tasks") == ("ListTasks", {"tenant": tenant})


class TestNoRoute:
    @rows(
        "path",
        [
            "nothing",
            "message",
            "message:nothing",
            "Message:send",
            "task",
            "tasks/T/nothing",
            "tasks/T/pushNotificationConfigs/C/more",
            "tasks/:cancel",
            "tasks/:subscribe",
            "extendedAgentCard/more",
            "a/b/tasks",
            "a/nothing",
            "v1/tasks",
            "v1/message:send",
            "agent/tasks",
            "a2a/tasks",
            ".well-known/tasks",
            "tasks/tasks/T/x",
            "extendedAgentCard/tasks",
            "message:send/message:send",
        ],
    )
    @rows("verb", ["GET", "POST", "DELETE"])
    def test_leads_anywhere_else(self, verb: str, path: str) -> None:
        with pytest.raises(MethodNotFound):
            found(verb, *path.split("/"))

    def test_leads_nowhere_for_a_path_of_nothing(self) -> None:
        with pytest.raises(MethodNotFound):
            found("GET")


class TestAQuery:
    @rows(
        ("query", "params"),
        [
            ("", {}),
            (
                "pageSize=10&status=TASK_STATE_WORKING",
                {"pageSize": "10", "status": "TASK_STATE_WORKING"},
            ),
            ("contextId=a%2Fb%20c+d%C3%A9", {"contextId": "a/b c dé"}),
            ("includeArtifacts=true", {"includeArtifacts": True}),
            ("include_artifacts=false", {"include_artifacts": False}),
            ("pageToken=", {"pageToken": ""}),
            ("unknown=1", {"unknown": "1"}),
            ("A2A-Version=1.0&x=1", {"x": "1"}),
            ("x=1&x=2", {"x": "2"}),
            ("&&x=1&", {"x": "1"}),
            ("x=%00", {"x": "\x00"}),
        ],
    )
    def test_is_read_as_parameters(self, query: str, params: dict[str, Any]) -> None:
        assert rest.query_params(query) == params

    @rows("word", ["True", "FALSE", "1", "0", "yes", "", "null"])
    def test_knows_true_and_false_only(self, word: str) -> None:
        with pytest.raises(InvalidParams) as caught:
            rest.query_params(f"includeArtifacts={word}")
        assert caught.value.violations[0][0] == "includeArtifacts"

    @rows("query", ["x=%ff", "x=%c3%28", "%ff=1", "x=%ed%a0%80"])
    def test_that_is_not_utf8_is_invalid(self, query: str) -> None:
        with pytest.raises(InvalidParams):
            rest.query_params(query)


class TestPathAndBody:
    def test_come_together(self) -> None:
        assert rest.merge({"id": "T"}, {"metadata": {}}) == {"id": "T", "metadata": {}}

    @rows("said", ["T", "", None])
    def test_may_say_the_same_or_nothing(self, said: object) -> None:
        assert rest.merge({"id": "T"}, {"id": said})["id"] == "T"

    @rows("said", ["U", 1, ["T"], {"T": 1}, False])
    def test_must_not_differ(self, said: object) -> None:
        with pytest.raises(InvalidParams) as caught:
            rest.merge({"id": "T"}, {"id": said})
        assert caught.value.violations[0][0] == "id"

    def test_must_not_differ_in_the_other_spelling_either(self) -> None:
        with pytest.raises(InvalidParams) as caught:
            rest.merge({"taskId": "T"}, {"task_id": "U"})
        assert caught.value.violations[0][0] == "taskId"

    def test_leaves_neither_changed(self) -> None:
        path, body = {"id": "T"}, {"x": 1}
        rest.merge(path, body)
        assert (path, body) == ({"id": "T"}, {"x": 1})


@pytest.mark.parametrize("colon", ["%3A", "%3a"])
class TestAnEncodedColon:
    @rows("verb, operation", [("cancel", "CancelTask"), ("subscribe", "SubscribeToTask")])
    def test_begins_a_verb_where_the_id_with_it_cannot_be_meant(
        self, colon: str, verb: str, operation: str
    ) -> None:
        for prefix in ([], ["acme"]):
            routes = DIALECTS["v10"].rest.routes
            found = rest.match(routes, "POST", [*prefix, "tasks", f"T{colon}{verb}"], tenants=True)
            assert (found.operation, found.params["id"]) == (operation, "T")

    def test_is_part_of_an_id_where_there_may_be_such_a_task(self, colon: str) -> None:
        found = rest.match(DIALECTS["v10"].rest.routes, "GET", ["tasks", f"T{colon}cancel"])
        assert (found.operation, found.params) == ("GetTask", {"id": "T:cancel"})
        with pytest.raises(MethodNotAllowed):
            rest.match(DIALECTS["v10"].rest.routes, "POST", ["tasks", f"T{colon}other"])
