"""Which dialect a request speaks: the decision tables, line by line (dialects §1.2 to §1.7, §6.8).

The first word of a row's name is the number of its line. The lines are written from the reference, not from the code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.detection import (
    BELOW,
    CALLS,
    ROUTES,
    UNMARKED,
    DetectionInput,
    below_v1,
    by_call,
    by_route,
    error_dialect,
    error_dialect_of_route,
    is_draft,
    is_final,
    reads_body,
)
from a2a_tasks.protocol.dialects import DIALECTS, CompatOptions
from a2a_tasks.protocol.dialects.undecided import refuse
from a2a_tasks.protocol.errors import A2AError, InvalidParams, MethodNotFound, VersionNotSupported
from a2a_tasks.protocol.mounts import DETECTING, MOUNTS, Mount
from a2a_tasks.protocol.requests import CreatePushConfigRequest, SendMessageRequest
from a2a_tasks.protocol.versions import SUPPORTED, read_version, refuse_version
from tests.support.rows import rows

#: Pure: once is enough.
pytestmark = pytest.mark.backend("sqlite")

Test = TypeVar("Test", bound=Callable[..., Any])
Params = Mapping[str, Any]
#: What a request leads to: a dialect, a look at its task (None), or an error.
Verdict = str | type[A2AError] | None

PLAIN = CompatOptions()
STRICT = CompatOptions(strict_version=True)
SERVING = CompatOptions(legacy_method_with_1_0=True)
VERSIONS = ("", *SUPPORTED)
CODES = tuple(DIALECTS)

ID = {"id": "t"}
V10_MESSAGE = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
DR_MESSAGE = {"message": {"messageId": "m", "role": "user", "parts": [{"text": "hi"}]}}
PUSH = {"url": "https://example.com"}


def decided(
    method: str,
    params: Params,
    version: str = "",
    origin: str | None = None,
    *,
    mount: Mount = DETECTING,
    switches: CompatOptions = PLAIN,
) -> Verdict:
    asked = DetectionInput(method=method, params=params, version=version, origin=origin)
    try:
        return by_call(mount, asked, switches)
    except A2AError as fault:
        return type(fault)


def routed(
    path: str,
    params: Params | None = None,
    version: str = "",
    origin: str | None = None,
    *,
    media: str = "",
    mount: Mount = DETECTING,
    switches: CompatOptions = PLAIN,
) -> Verdict:
    asked = DetectionInput(
        method=path, params=params or {}, version=version, origin=origin, media=media
    )
    try:
        return by_route(mount, asked, switches)
    except A2AError as fault:
        return type(fault)


def lines(table: Iterable[tuple[Any, ...]]) -> Callable[[Test], Test]:
    """One row for each line: its number and a word about it, the dialect, and what is asked."""
    params = [pytest.param(*rest, id=name) for name, *rest in table]
    return rows(("verdict", "method", "params", "version", "origin"), params)


# --- the version ----------------------------------------------------------------------------------


class TestTheVersion:
    @rows(
        ("header", "query", "version"),
        [
            pytest.param("1.0", "", "1.0", id="1.2-header"),
            pytest.param("", "1.0", "1.0", id="1.2-query"),
            pytest.param(" 0.3\t", "", "0.3", id="1.2-trimmed"),
            pytest.param("", "", "", id="1.2-empty-is-absent"),
            pytest.param("  ", "0.2", "0.2", id="1.2-first-that-is-not-empty"),
            pytest.param("1.0.7", "", "1.0", id="1.2-patch-ignored"),
            pytest.param("0.3", "0.3.0", "0.3", id="1.2-header-and-query-agree"),
            *(pytest.param(v, "", v, id=f"1.2-recognised-{v}") for v in SUPPORTED),
        ],
    )
    def test_is_read(self, header: str, query: str, version: str) -> None:
        assert read_version(header, query) == version

    @rows(
        ("header", "query"),
        [
            pytest.param("1.0", "0.3", id="1.2-header-and-query-disagree"),
            *(
                pytest.param(v, "", id=f"J1-{v}")
                for v in ("0.5", "1.1", "2.0", "99.0", "abc", "1", "v1.0")
            ),
            pytest.param("", "0.5", id="J1-in-the-query"),
        ],
    )
    def test_is_refused(self, header: str, query: str) -> None:
        with pytest.raises(VersionNotSupported):
            read_version(header, query)


# --- pinned mounts --------------------------------------------------------------------------------

ADMITTED = {
    "s0": {""},
    "v00": {"", "0.0"},
    "v01": {"", "0.1"},
    "v02": {"", "0.2"},
    "v03": {"", "0.3", "0.2"},
    "dr": {"", "1.0", "0.3"},
    "v10": {"", "1.0"},
}
#: Requests that speak plainly, each in a dialect of its own.
PLAINLY: list[tuple[str, Params]] = [
    ("agent/getCard", {}),
    ("tasks/send", {"id": "t", "sessionId": "s"}),
    ("message/send", {}),
    ("tasks/get", {"id": "t", "sessionId": "s"}),
    ("SetTaskPushNotificationConfig", {"parent": "tasks/t", "config": PUSH}),
    ("SendMessage", DR_MESSAGE),
    ("SendMessage", V10_MESSAGE),
    ("Nonsense", {}),
]


class TestAPinnedMount:
    """Row J0, over both bindings."""

    @rows("code", [pytest.param(code, id=f"J0-{code}") for code in CODES])
    @rows("version", VERSIONS)
    def test_admits_its_own_versions_alone(self, code: str, version: str) -> None:
        verdict = code if version in ADMITTED[code] else VersionNotSupported
        for method, params in PLAINLY:
            assert decided(method, params, version, mount=MOUNTS[code]) == verdict
        for path in ("message:send", "v1/message:send", "v1/tasks/t", "v1/card", "nonsense"):
            assert routed(path, V10_MESSAGE, version, mount=MOUNTS[code]) == verdict

    def test_is_there_for_every_dialect(self) -> None:
        assert set(MOUNTS) == set(ADMITTED) == set(DIALECTS)

    @rows("code", [pytest.param(code, id=f"J0-{code}") for code in CODES])
    def test_needs_no_look_at_the_task_and_not_at_the_body(self, code: str) -> None:
        assert decided("tasks/get", ID, origin=None, mount=MOUNTS[code]) == code
        assert error_dialect(MOUNTS[code], "SendMessage", DR_MESSAGE) == code
        assert error_dialect_of_route(MOUNTS[code], "v1/message:send") == code

    @rows("code", [pytest.param(code, id=f"J0-{code}") for code in CODES])
    def test_lets_nobody_without_version_in_to_the_letter_if_it_is_1_0s(self, code: str) -> None:
        """R-122: absent means 0.3, which the mount of 1.0 does not admit."""
        verdict = VersionNotSupported if code == "v10" else code
        assert decided("GetTask", ID, mount=MOUNTS[code], switches=STRICT) == verdict
        assert routed("tasks/t", mount=MOUNTS[code], switches=STRICT) == verdict
        if "1.0" in ADMITTED[code]:
            assert decided("GetTask", ID, "1.0", mount=MOUNTS[code], switches=STRICT) == code


# --- JSON-RPC -------------------------------------------------------------------------------------

FLAT = {"id": "t", "url": "https://example.com"}
NESTED = {"id": "t", "pushNotificationConfig": PUSH}
EXTENDED = "agent/getAuthenticatedExtendedCard"
J6 = (
    "message/send",
    "message/stream",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    EXTENDED,
    "agent/authenticatedExtendedCard",
)
J7 = ("tasks/get", "tasks/cancel", "tasks/resubscribe")
J11 = (
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "GetTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
)
#: Other versions than the one that a row J2 to J5 is about "are ignored".
OTHERS = ("", "0.3", "0.2", "0.1")
#: id, verdict, method, params, version, origin.
OLDER: list[tuple[str, Verdict, str, Params, str, str | None]] = [
    *((f"J2 V={v}", "s0", "agent/getCard", {}, v, None) for v in (*OTHERS, "0.0")),
    *(
        (f"J3 {method} V={v}", "v01", method, {"id": "t", "message": {}}, v, None)
        for method in ("tasks/send", "tasks/sendSubscribe")
        for v in OTHERS
    ),
    ("J3 tasks/send V=0.0", "v00", "tasks/send", ID, "0.0", None),
    ("J3 tasks/sendSubscribe V=0.0", "v00", "tasks/sendSubscribe", ID, "0.0", None),
    *((f"J4 flat V={v}", "s0", "tasks/pushNotification/set", FLAT, v, None) for v in OTHERS),
    *((f"J4 nested V={v}", "v01", "tasks/pushNotification/set", NESTED, v, None) for v in OTHERS),
    ("J4 nested V=0.0", "v00", "tasks/pushNotification/set", NESTED, "0.0", None),
    ("J4 both", "v01", "tasks/pushNotification/set", {**FLAT, **NESTED}, "", None),
    ("J4 neither", "v01", "tasks/pushNotification/set", ID, "", None),
    ("J4 url is no string", "v01", "tasks/pushNotification/set", {"id": "t", "url": 1}, "", None),
    ("J5 session", "s0", "tasks/pushNotification/get", {**ID, "sessionId": "s"}, "", None),
    ("J5 session first", "s0", "tasks/pushNotification/get", {**ID, "sessionId": "s"}, "", "v01"),
    ("J5 unknown yet", None, "tasks/pushNotification/get", ID, "", None),
    ("J5 made by s0", "s0", "tasks/pushNotification/get", ID, "", "s0"),
    *(
        (f"J5 made by {made or 'nobody'}", "v01", "tasks/pushNotification/get", ID, "", made)
        for made in ("", "v00", "v01", "v02", "v03", "dr", "v10")
    ),
    *((f"J6 {method}", "v03", method, ID, "", None) for method in J6),
    *((f"J6 {method} V=0.3", "v03", method, ID, "0.3", None) for method in J6),
    *((f"J6 {method} V=0.2", "v02", method, ID, "0.2", None) for method in J6),
    *((f"J6 marks of {w} say nothing", "v03", "message/send", m, "", None)
      for w, m in (("v10", V10_MESSAGE), ("dr", DR_MESSAGE))),
    *((f"J8 V={v}", "v03", "tasks/list", {}, v, None) for v in ("", "0.3")),
    *((f"J12 {method}", MethodNotFound, method, {}, v, None)
      for method in ("", "Nonsense", "tasks/nonsense", "sendmessage", "message/send/x", "rpc.x")
      for v in VERSIONS),
]  # fmt: skip
#: The shared methods of five dialects (§1.4); every line holds whatever comes after it in the table.
SHARED: list[tuple[str, Verdict, str, Params, str, str | None]] = [
    *((f"J7.1 {m} V=0.3 made by {made}", "v03", m, ID, "0.3", made) for m in J7 for made in CODES),
    *((f"J7.1 {m} V=0.2 made by {made}", "v02", m, ID, "0.2", made) for m in J7 for made in CODES),
    *((f"J7.1 {m} before J7.4", "v03", m, {**ID, "sessionId": "s"}, "0.3", "s0") for m in J7),
    *((f"J7.2 {m} V=0.1 made by {made}", "v01", m, ID, "0.1", made) for m in J7 for made in CODES),
    *((f"J7.2 {m} V=0.0 made by {made}", "v00", m, ID, "0.0", made) for m in J7 for made in CODES),
    *((f"J7.2 {m} before J7.4", "v01", m, {**ID, "sessionId": "s"}, "0.1", "s0") for m in J7),
    *(
        (f"J7.4 {m} before J7.5", "s0", m, {**ID, "sessionId": "s"}, "", made)
        for m in J7[:2]
        for made in (None, "", "v01", "v03", "v10")
    ),
    ("J7.4 tasks/resubscribe is not meant", None, J7[2], {**ID, "sessionId": "s"}, "", None),
    *((f"J7.4 {m} null is not there", None, m, {**ID, "sessionId": None}, "", None) for m in J7),
    *((f"J7.5 {m} unknown yet", None, m, ID, "", None) for m in J7),
    *((f"J7.5 {m} s0", "s0", m, ID, "", "s0") for m in J7[:2]),
    *((f"J7.5 {m} {made}", made, m, ID, "", made) for m in J7 for made in ("v00", "v01")),
    *(
        (f"J7.6 {m} {made or 'no task'}", "v03", m, ID, "", made)
        for m in J7
        for made in ("", "v02", "v03", "dr", "v10")
    ),
]
NEWEST: list[tuple[str, Verdict, str, Params, str, str | None]] = [
    *(
        (f"J9 {method} V={v}", "dr", method, params, v, None)
        for method in ("SetTaskPushNotificationConfig", "ListTaskPushNotificationConfig")
        for params in ({"parent": "tasks/t"},)
        for v in ("", "0.3", "1.0")
    ),
    ("J9 v10's marks say nothing", "dr", "ListTaskPushNotificationConfig",
     {"taskId": "t", "tenant": "x"}, "1.0", None),
    *(
        (f"J10 {method} V={v}", "v10", method, {"taskId": "t"}, v, None)
        for method in ("CreateTaskPushNotificationConfig", "ListTaskPushNotificationConfigs")
        for v in ("", "0.3", "1.0")
    ),
    ("J10 the draft's marks say nothing", "v10", "CreateTaskPushNotificationConfig",
     {"parent": "tasks/t", "config": PUSH}, "", None),
    *((f"J11.1 {m} V={v}", "v10", m, {"id": "t", "tenant": "x"}, v, "dr")
      for m in J11 for v in VERSIONS),
    *((f"J11.2 {m} V={v}", "dr", m, {"name": "tasks/t"}, v, "v10") for m in J11 for v in VERSIONS),
    *((f"J11.3 {m} V=0.3", "dr", m, {"name": "tasks/t", "tenant": "x"}, "0.3", "v10") for m in J11),
    *((f"J11.3 {m} V={v}", "v10", m, {"name": "tasks/t", "tenant": "x"}, v, "dr")
      for m in J11 for v in ("", "1.0")),
    *((f"J11.4 {m}", "v10", m, ID, "1.0", made) for m in J11 for made in (None, "", "dr", "v03")),
    *((f"J11.5 {m}", "dr", m, ID, "0.3", made) for m in J11 for made in (None, "", "v10", "v03")),
    *((f"J11.6 {m} unknown yet", None, m, ID, "", None) for m in J11),
    *((f"J11.6 {m}", "dr", m, ID, "", "dr") for m in J11),
    ("J11.6 by task_id", "dr", "GetTaskPushNotificationConfig", {"task_id": "t"}, "", "dr"),
    *((f"J11.7 {m} {made or 'no task'}", "v10", m, ID, "", made)
      for m in J11 for made in ("", "s0", "v00", "v01", "v02", "v03", "v10")),
    *((f"J11.7 {m} names no task", "v10", m, {}, "", None) for m in J11),
]  # fmt: skip


class TestAMethod:
    """Dialects §1.3, §1.4 and the orders of §1.5."""

    @lines([*OLDER, *SHARED, *NEWEST])
    def test_speaks(
        self, verdict: Verdict, method: str, params: Params, version: str, origin: str | None
    ) -> None:
        assert decided(method, params, version, origin) == verdict

    @rows(
        "method",
        [
            pytest.param(method, id=f"{row}-V=1.0-{method}")
            for row, methods in (
                ("J2", ["agent/getCard"]),
                ("J3", ["tasks/send", "tasks/sendSubscribe"]),
                ("J4", ["tasks/pushNotification/set"]),
                ("J5", ["tasks/pushNotification/get"]),
                ("J6", J6),
                ("J7.3", J7),
                ("J8", ["tasks/list"]),
            )
            for method in methods
        ],
    )
    def test_that_1_0_has_not_is_unknown_to_who_asks_for_1_0(self, method: str) -> None:
        """C-02; served as if no version were given, if the operator wants it."""
        for params in ({}, ID, {**ID, "sessionId": "s"}, FLAT):
            assert decided(method, params, "1.0", "v01") is MethodNotFound
            for origin in ("s0", "v01", "v03"):
                served = decided(method, params, "1.0", origin, switches=SERVING)
                assert served == decided(method, params, "", origin)
                assert served in DIALECTS

    def test_has_a_line_here(self) -> None:
        """A row or a method nobody wrote a line for fails."""
        here = {(name.split()[0].partition(".")[0], rest[1]) for name, *rest in [
            *OLDER, *SHARED, *NEWEST
        ]}  # fmt: skip
        rows = {(row.number, method) for row in CALLS for method in row.methods}
        assert {at for at in here if at[0] != "J12"} == rows

    def test_is_in_one_row_alone_and_the_rows_are_in_order(self) -> None:
        methods = [method for row in CALLS for method in row.methods]
        assert len(methods) == len(set(methods))
        assert [row.number for row in CALLS] == [f"J{number}" for number in range(2, 12)]

    def test_of_any_dialect_is_in_a_row(self) -> None:
        rows = {method for row in CALLS for method in row.methods}
        assert rows == {method for dialect in DIALECTS.values() for method in dialect.methods}

    @rows("name", [name for name, *_ in [*OLDER, *SHARED, *NEWEST]])
    def test_is_one_that_the_dialect_has(self, name: str) -> None:
        """Where a dialect was found, the method is not unknown; but 0.2 has no extended card over JSON-RPC."""
        verdict, method = next(line[1:3] for line in [*OLDER, *SHARED, *NEWEST] if line[0] == name)
        if isinstance(verdict, str) and not (verdict == "v02" and method.startswith("agent/")):
            assert method in DIALECTS[verdict].methods


class TestToTheLetter:
    """`strict_version` (§1.5): PascalCase needs 1.0, and is 1.0 then; the older methods are as ever."""

    @rows("version", ["", "0.3", "0.2", "0.1", "0.0"])
    @rows(
        "method",
        [
            *(pytest.param(m, id=f"1.5-strict-J11-{m}") for m in J11),
            pytest.param("SetTaskPushNotificationConfig", id="1.5-strict-J9"),
            pytest.param("CreateTaskPushNotificationConfig", id="1.5-strict-J10"),
        ],
    )
    def test_pascal_case_without_1_0_is_refused(self, method: str, version: str) -> None:
        for params in (ID, V10_MESSAGE, DR_MESSAGE):
            verdict = decided(method, params, version, "dr", switches=STRICT)
            assert verdict is VersionNotSupported

    def test_the_error_names_the_version_that_absence_means(self) -> None:
        with pytest.raises(VersionNotSupported) as caught:
            by_call(DETECTING, DetectionInput(method="GetTask", params=ID), STRICT)
        assert caught.value.metadata["requestedVersion"] == "0.3"

    @rows("method", [pytest.param(m, id=f"1.5-strict-row-2-{m}") for m in J11])
    def test_a_draft_with_1_0_is_read_as_1_0(self, method: str) -> None:
        for params in (ID, DR_MESSAGE, V10_MESSAGE, {"name": "tasks/t"}):
            assert decided(method, params, "1.0", "dr", switches=STRICT) == "v10"

    def test_what_the_draft_says_is_wrong_then(self) -> None:
        """1.5-strict-row-2: -32602."""
        with pytest.raises(InvalidParams):
            DIALECTS["v10"].decode("SendMessage", DR_MESSAGE)

    @lines([*OLDER, *SHARED])
    def test_slash_methods_are_as_ever(
        self, verdict: Verdict, method: str, params: Params, version: str, origin: str | None
    ) -> None:
        assert decided(method, params, version, origin, switches=STRICT) == verdict


# --- marks ----------------------------------------------------------------------------------------


def part(**members: Any) -> Params:
    """A send whose one mark, if any, is in a part."""
    return {"message": {"messageId": "m", "parts": [{"text": "hi"}, members]}}


def configured(**members: Any) -> Params:
    """A send whose one mark, if any, is in the configuration."""
    return {"message": {"messageId": "m"}, "configuration": members}


#: name of the mark: params in which it stands alone.
FINAL: dict[str, Params] = {
    "role ROLE_USER": {"message": {"role": "ROLE_USER"}},
    "role ROLE_AGENT": {"message": {"role": "ROLE_AGENT"}},
    "state TASK_STATE_WORKING": {"status": "TASK_STATE_WORKING"},
    "state TASK_STATE_CANCELED": {"status": "TASK_STATE_CANCELED"},
    "part raw": part(raw="aGk="),
    "part raw empty": part(raw=""),
    "part url": part(url="https://example.com"),
    "part filename": part(text="x", filename="a.txt"),
    "part mediaType": part(text="x", mediaType="text/plain"),
    "part media_type": part(text="x", media_type="text/plain"),
    "part data list": part(data=[1]),
    "part data string": part(data="x"),
    "part data number": part(data=0),
    "part data boolean": part(data=False),
    "taskPushNotificationConfig": configured(taskPushNotificationConfig=PUSH),
    "task_push_notification_config": configured(task_push_notification_config=PUSH),
    "returnImmediately": configured(returnImmediately=True),
    "returnImmediately false": configured(returnImmediately=False),
    "return_immediately": configured(return_immediately=False),
    "statusTimestampAfter": {"statusTimestampAfter": "2026-01-01T00:00:00Z"},
    "status_timestamp_after": {"status_timestamp_after": "2026-01-01T00:00:00Z"},
    "tenant": {"id": "t", "tenant": "acme"},
    "tenant empty": {"id": "t", "tenant": ""},
    "taskId and id": {"taskId": "t", "id": "c"},
    "task_id and id": {"task_id": "t", "id": "c"},
    "taskId and url": {"taskId": "t", "url": "https://example.com"},
    "task_id and url": {"task_id": "t", "url": "https://example.com"},
    "authentication scheme": {"authentication": {"scheme": "Bearer"}},
    "authentication scheme within": {
        "pushNotificationConfig": {"url": "x", "authentication": {"scheme": "Bearer"}}
    },
}
DRAFT: dict[str, Params] = {
    "role user": {"message": {"role": "user"}},
    "role agent": {"message": {"role": "agent"}},
    **{
        f"state {word}": {"status": word}
        for word in ("working", "input-required", "cancelled", "canceled", "submitted", "rejected")
    },
    "file with uri": part(file={"fileWithUri": "https://example.com"}),
    "file with bytes": part(file={"fileWithBytes": "aGk=", "mediaType": "a/b", "name": "n"}),
    "file with snake": part(file={"file_with_bytes": "aGk="}),
    "data in data": part(data={"data": {"a": 1}}),
    "data in data empty": part(data={"data": {}}),
    "data in data with metadata": part(data={"data": {"a": 1}}, metadata={"b": 2}),
    "pushNotificationConfig": configured(pushNotificationConfig=PUSH),
    "push_notification_config": configured(push_notification_config=PUSH),
    "blocking": configured(blocking=True),
    "blocking false": configured(blocking=False),
    "lastUpdatedAfter": {"lastUpdatedAfter": "1"},
    "last_updated_after": {"last_updated_after": 1},
    "name": {"name": "tasks/t"},
    "name of a config": {"name": "tasks/t/pushNotificationConfigs/c"},
    "parent": {"parent": "tasks/t"},
    "configId": {"id": "t", "configId": "c"},
    "config_id": {"id": "t", "config_id": "c"},
    "config": {"id": "t", "config": PUSH},
    "authentication schemes": {"authentication": {"schemes": ["Bearer"]}},
    "authentication schemes within": {
        "pushNotificationConfig": {"url": "x", "authentication": {"schemes": ["Bearer"]}}
    },
    "request": {"request": {"messageId": "m", "parts": [{"text": "hi"}]}},
}
#: Looks like a mark and is none.
NONE: dict[str, Params] = {
    "nothing": {},
    "role of no kind": {"message": {"role": "USER"}},
    "role null": {"message": {"role": None}},
    "text part": part(text="x", metadata={"role": "user", "raw": 1}),
    "data object": part(data={"a": 1}),
    "data in data and more": part(data={"data": {"a": 1}, "b": 1}),
    "data in data of no object": part(data={"data": 1}),
    "data in data beside another member": part(data={"data": {"a": 1}}, x=1),
    "state empty": {"status": ""},
    "nulls": {"tenant": None, "configId": None, "request": None, "statusTimestampAfter": None},
    "name of another kind": {"name": "contexts/c"},
    "taskId alone": {"taskId": "t"},
    "metadata": {"metadata": {"tenant": "x", "parent": "tasks/t", "returnImmediately": True}},
    "message is a list": {"message": ["role", "user"]},
    "parts are an object": {"message": {"parts": {"raw": "x", "file": {}}}},
    "parts of no kind": {"message": {"parts": ["raw", None, 1, [{"raw": "x"}]]}},
    "configuration is a list": {"configuration": ["blocking"]},
    "authentication is a list": {"authentication": ["scheme", "schemes"]},
    "file is a string": part(file="x"),
    "both configurations null": configured(blocking=None, returnImmediately=None),
}


class TestAMark:
    """Dialects §1.5: each strong marker, alone."""

    @rows("version", VERSIONS)
    @rows("mark", [pytest.param(m, id=f"1.5-row-1-{m}") for m in FINAL])
    def test_of_1_0_is_stronger_than_any_version_and_origin(self, mark: str, version: str) -> None:
        for method in J11:
            assert decided(method, FINAL[mark], version, "dr") == "v10"

    @rows("version", VERSIONS)
    @rows("mark", [pytest.param(m, id=f"1.5-row-2-{m}") for m in DRAFT])
    def test_of_the_draft_is_stronger_than_any_version_and_origin(
        self, mark: str, version: str
    ) -> None:
        for method in J11:
            assert decided(method, DRAFT[mark], version, "v10") == "dr"

    @rows("final", ["tenant", "returnImmediately", "taskId and url"])
    @rows(
        "draft",
        [pytest.param(m, id=f"1.5-row-3-{m}") for m in DRAFT if not m.startswith("data in data")],
    )
    def test_beside_one_of_the_other_kind_leaves_it_to_the_version(
        self, draft: str, final: str
    ) -> None:
        configuration = {
            **FINAL[final].get("configuration", {}),
            **DRAFT[draft].get("configuration", {}),
        }
        params = {
            **FINAL[final],
            **DRAFT[draft],
            **({"configuration": configuration} if configuration else {}),
        }
        assert decided("SendMessage", params, "0.3", "v10") == "dr"
        for version in ("", "1.0"):
            assert decided("SendMessage", params, version, "dr") == "v10"

    @rows(
        "mark",
        [pytest.param(m, id=f"1.5-row-1-{m}") for m in DRAFT if m.startswith("data in data")],
    )
    @rows("version", VERSIONS)
    def test_of_wrapped_data_is_none_in_a_request_of_1_0(self, mark: str, version: str) -> None:
        params = {**DRAFT[mark], "tenant": "x"}
        assert decided("SendMessage", params, version) == "v10"

    @rows("mark", [pytest.param(m, id=f"1.5-row-4-to-7-{m}") for m in NONE])
    def test_is_not_seen_where_there_is_none(self, mark: str) -> None:
        params = {"id": "t", **NONE[mark]}
        if "taskId" in params:
            del params["id"]
        assert decided("GetTask", params, "1.0", "dr") == "v10"
        assert decided("GetTask", params, "0.3", "v10") == "dr"
        assert decided("GetTask", params, "", None) is None
        assert decided("GetTask", params, "", "dr") == "dr"
        assert decided("GetTask", params, "", "") == "v10"

    def test_leads_a_message_of_no_kind_to_1_0(self) -> None:
        """1.5-row-7: without a role a send has to be refused; whoever says no version hears 1.0."""
        assert decided("SendMessage", part(text="x")) == "v10"


#: JSON of any kind, with the names that decide in it.
NAMES = (
    "id taskId task_id name tenant sessionId message request configuration role parts content kind file url raw data "
    "status authentication scheme schemes config parent configId blocking returnImmediately pushNotificationConfig "
    "user ROLE_USER tasks/t working TASK_STATE_WORKING x"
)
words = st.sampled_from(["", *NAMES.split()])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(words, values, max_size=5)
MISSHAPEN: list[Any] = [[], {}, [1], {"a": 1}, 0, True, 1.5, None, "x"]
methods = st.sampled_from([method for row in CALLS for method in row.methods])
paths = st.sampled_from(
    [path for row in ROUTES for path in row.methods]
    + ["v1/tasks/t", "message:send", "tasks/t", "x"]
)
versions = st.sampled_from(VERSIONS)
origins = st.none() | st.sampled_from(["", *CODES])


class TestWhateverIsSaid:
    """Detection looks at parameters before anybody has checked them."""

    @given(methods, objects, versions, origins)
    def test_a_call_is_decided_or_refused(
        self, method: str, params: Params, version: str, origin: str | None
    ) -> None:
        verdict = decided(method, params, version, origin)
        assert origin is None or verdict is not None, "with an origin, every row decides"
        assert error_dialect(DETECTING, method, params) in DIALECTS

    @given(paths, objects, versions, origins)
    def test_a_route_is_decided_or_refused(
        self, path: str, params: Params, version: str, origin: str | None
    ) -> None:
        assert origin is None or routed(path, params, version, origin) is not None

    @rows("wrong", MISSHAPEN, ids=repr)
    @rows(
        "place",
        ["message", "request", "configuration", "status", "tenant", "id", "taskId", "name", "config",
         "authentication", "url", "sessionId", "pushNotificationConfig", "parent"],
    )  # fmt: skip
    def test_a_member_may_be_of_any_type(self, place: str, wrong: Any) -> None:
        for row in CALLS:
            for method in row.methods:
                assert decided(method, {place: wrong}, "", "") in DIALECTS
        for path in ("v1/message:send", "v1/tasks/t", "message:send"):
            assert routed(path, {place: wrong}, "", "") in DIALECTS

    @rows("wrong", MISSHAPEN, ids=repr)
    @rows("place", ["role", "parts", "kind", "content"])
    def test_a_member_of_the_message_may_be_of_any_type(self, place: str, wrong: Any) -> None:
        params = {"message": {"role": "ROLE_USER", "parts": [], place: wrong}}
        assert decided("SendMessage", params) in DIALECTS
        assert routed("v1/message:send", params) in DIALECTS
        assert error_dialect(DETECTING, "SendMessage", params) in DIALECTS


class TestTheReleaseCandidate:
    """Dialects §1.6: 1.0 reads its names, and answers as 1.0."""

    @rows(
        ("configuration", "immediately"),
        [
            pytest.param({"blocking": False}, True, id="1.6-blocking-false"),
            pytest.param({"blocking": True}, False, id="1.6-blocking-true"),
            pytest.param({}, False, id="1.6-blocking-absent"),
        ],
    )
    def test_waits_unless_told_otherwise(self, configuration: Params, immediately: bool) -> None:
        params = {**V10_MESSAGE, "configuration": configuration}
        for version in ("", "1.0"):
            assert decided("SendMessage", params, version) == "v10"
        request = DIALECTS["v10"].decode("SendMessage", params)
        assert isinstance(request, SendMessageRequest)
        assert request.return_immediately is immediately

    def test_has_another_name_for_the_webhook_of_a_send(self) -> None:
        """1.6-pushNotificationConfig."""
        params = {**V10_MESSAGE, "configuration": {"pushNotificationConfig": PUSH}}
        assert decided("SendMessage", params, "1.0") == "v10"
        request = DIALECTS["v10"].decode("SendMessage", params)
        assert isinstance(request, SendMessageRequest)
        assert request.push_config is not None
        assert request.push_config.url == PUSH["url"]

    @rows(
        "params",
        [
            pytest.param({"taskId": "t", "configId": "c", "config": PUSH}, id="1.6-create-config"),
            pytest.param(
                {"task_id": "t", "config_id": "c", "config": PUSH}, id="1.6-create-config-snake"
            ),
            pytest.param(
                {"id": "c", "taskId": "t", "pushNotificationConfig": PUSH}, id="1.6-create-nested"
            ),
        ],
    )
    def test_has_another_form_of_a_webhook(self, params: Params) -> None:
        assert decided("CreateTaskPushNotificationConfig", params, "1.0") == "v10"
        request = DIALECTS["v10"].decode("CreateTaskPushNotificationConfig", params)
        assert isinstance(request, CreatePushConfigRequest)
        found = request.config
        assert (found.task_id, found.id, found.url) == ("t", "c", PUSH["url"])

    def test_has_a_list_of_webhooks_with_the_draft(self) -> None:
        """J9 of 1.6: the name in the singular is the draft's."""
        assert decided("ListTaskPushNotificationConfig", {"taskId": "t"}, "1.0") == "dr"


# --- HTTP+JSON ------------------------------------------------------------------------------------

SEND, STREAM = "v1/message:send", "v1/message:stream"
A2A_JSON = "application/a2a+json"
#: What bodies of 0.3 have, each alone.
SPEAKS_03: dict[str, Params] = {
    "content": {"message": {"role": "ROLE_USER", "content": [{"text": "hi"}]}},
    "request": {"request": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}},
    "snake in the params": {**V10_MESSAGE, "some_thing": 1},
    "snake in the message": {"message": {"message_id": "m", "role": "ROLE_USER", "parts": []}},
    "snake in the configuration": {**V10_MESSAGE, "configuration": {"history_length": 1}},
    "kind of the message": {"message": {"kind": "message", "role": "user", "parts": []}},
    "kind of a part": {"message": {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}},
    "mimeType": {"message": {"role": "user", "parts": [{"file": {"mimeType": "a/b"}}]}},
    "bytes": {"message": {"role": "user", "parts": [{"file": {"bytes": "aGk="}}]}},
    "uri": {"message": {"role": "user", "parts": [{"file": {"uri": "urn:x"}}]}},
    "pushNotification": {**DR_MESSAGE, "configuration": {"pushNotification": PUSH}},
}
UNPREFIXED = ("message:send", "message:stream", "tasks", "tasks/t", "tasks/t:cancel",
              "tasks/t:subscribe", "tasks/t/pushNotificationConfigs", "extendedAgentCard",
              "acme/message:send", "acme/tasks/t", "acme/extendedAgentCard", "nonsense")  # fmt: skip
BELOW_TASKS = ("v1/tasks/t", "v1/tasks/t:cancel", "v1/tasks/t:subscribe",
               "v1/tasks/t/pushNotificationConfigs", "v1/tasks/t/pushNotificationConfigs/c")  # fmt: skip
#: id, verdict, path, body, version, origin. H1 to H6 number the lines of §1.7 that are about `/v1` and 0.2.
PATHS: list[tuple[str, Verdict, str, Params, str, str | None]] = [
    *((f"1.7-plain {p} V={v}", "v10", p, {}, v, "dr") for p in UNPREFIXED for v in ("", "0.3", "1.0")),
    ("1.7-plain dr's marks", "v10", "message:send", DR_MESSAGE, "", None),
    ("1.7-plain dr's marks V=0.3", "v10", "message:send", DR_MESSAGE, "0.3", None),
    *((f"H1 V={v}", "v02", "agent/authenticatedExtendedCard", {}, v, None) for v in ("", "0.2")),
    *((f"H2 {p} V={v}", "v03", p, {}, v, None)
      for p in ("v1/card", "v1/agent/authenticatedExtendedCard") for v in ("", "0.3")),
    *((f"H3 {p} V={v}", "dr", p, {}, v, None)
      for p in ("v1/extendedAgentCard", "v1/tasks/list") for v in ("", "0.3", "1.0")),
    *((f"H4 V={v}", "dr", "v1/tasks", {}, v, None) for v in ("", "0.3", "1.0")),
    *((f"H5 v03 by {mark} V={v}", "v03", p, body, v, None)
      for p in (SEND, STREAM) for mark, body in SPEAKS_03.items() for v in ("", "0.3", "1.0")),
    *((f"H5 dr by role {role}", "dr", p, {"message": {"role": role, "parts": [{"text": "x"}]}}, v, None)
      for p in (SEND, STREAM) for role in ("user", "agent") for v in ("", "0.3", "1.0")),
    *((f"H5 glued by role {role}", "v10", p, {"message": {"role": role, "parts": [{"text": "x"}]}}, v, None)
      for p in (SEND, STREAM) for role in ("ROLE_USER", "ROLE_AGENT") for v in ("", "0.3", "1.0")),
    *((f"H5 tie {what} V=1.0", "dr", p, body, "1.0", None)
      for p in (SEND, STREAM) for what, body in (("empty", {}), ("nothing", {"x": 1}))),
    *((f"H5 tie {what} V={v}", "v03", p, body, v, None)
      for p in (SEND, STREAM) for what, body in (("empty", {}), ("nothing", {"x": 1}))
      for v in ("", "0.3")),
    *((f"H6 {p} V=1.0", "dr", p, {}, "1.0", made) for p in BELOW_TASKS for made in (None, "", "v03")),
    *((f"H6 {p} V={v} unknown yet", None, p, {}, v, None) for p in BELOW_TASKS for v in ("", "0.3")),
    *((f"H6 {p} V={v} made by dr", "dr", p, {}, v, "dr") for p in BELOW_TASKS for v in ("", "0.3")),
    *((f"H6 {p} made by {made or 'nobody'}", "v03", p, {}, "", made)
      for p in BELOW_TASKS for made in ("", "s0", "v00", "v01", "v02", "v03", "v10")),
    *((f"H6 {p} body of {what}", "v03", p, body, "", "")
      for p in BELOW_TASKS[3:] for what, body in (("config", {"config": {}}), ("parent", {"parent": "tasks/t"}))),
    *((f"H6 {p} nothing there", "v03", p, {}, "", "") for p in ("v1/nonsense", "v1")),
]  # fmt: skip


class TestAPath:
    @rows(
        ("verdict", "path", "params", "version", "origin"),
        [pytest.param(*rest, id=name) for name, *rest in PATHS],
    )
    def test_speaks(
        self, verdict: Verdict, path: str, params: Params, version: str, origin: str | None
    ) -> None:
        assert routed(path, params, version, origin) == verdict

    def test_has_a_line_here(self) -> None:
        """A row or a path nobody wrote a line for fails."""
        here = {(name.split()[0], rest[1]) for name, *rest in PATHS}
        rows = {(row.number, path) for row in ROUTES for path in row.methods}
        assert {at for at in here if at[0] not in {"1.7-plain", BELOW.number}} == rows
        assert BELOW.number in {number for number, _ in here}

    def test_of_any_dialect_leads_to_one_that_has_it(self) -> None:
        """Every route there is, asked for plainly, is found by who has it."""
        for code, dialect in DIALECTS.items():
            for route in dialect.rest.routes:
                if route.path == "v1/tasks" and code != "dr":
                    continue  # 0.3 has it on paper only: H4
                path = route.path.format(id="t", taskId="t", configId="c")
                found = {routed(path, params, version, origin)
                         for params in ({}, DR_MESSAGE, V10_MESSAGE, SPEAKS_03["content"])
                         for version in VERSIONS for origin in ("", code)}  # fmt: skip
                assert found & {code, "v03" if code == "v02" else code}, path

    @rows("media", [A2A_JSON, A2A_JSON.upper(), f"{A2A_JSON}; charset=utf-8"])
    @rows("path", [pytest.param(p, id=f"1.7-media-{p}") for p in BELOW_TASKS])
    def test_of_a_task_is_the_drafts_for_who_names_its_media_type(
        self, path: str, media: str
    ) -> None:
        for version in ("", "0.3"):
            for origin in (None, "", "v03"):
                assert routed(path, {}, version, origin, media=media) == "dr"

    @rows("path", [pytest.param(p, id=f"1.7-media-{p}") for p in (SEND, STREAM)])
    @rows("version", ["", "0.3"])
    def test_of_a_send_is_the_drafts_for_who_names_its_media_type_if_the_body_says_nothing(
        self, path: str, version: str
    ) -> None:
        silent: list[Params] = [{}, {"x": 1}, {"message": {"role": "user"}}]
        for body in silent:
            assert routed(path, body, version, media=A2A_JSON) == "dr"
        for body in SPEAKS_03.values():
            assert routed(path, body, version, media=A2A_JSON) == "v03"
        assert routed(path, V10_MESSAGE, version, media=A2A_JSON) == "v10"

    def test_of_a_send_alone_is_told_by_its_body(self) -> None:
        assert [p for _, _, p, *_ in PATHS if reads_body(p)] == [
            p for _, _, p, *_ in PATHS if p in {SEND, STREAM}
        ]

    def test_glued_to_v1_is_1_0s_own_below_it(self) -> None:
        """1.7-glued: at a detecting mount; a pinned one has its own routes alone."""
        sent = ["v1", "message:send"]
        assert below_v1(DETECTING, sent, "v10") == ["message:send"]
        assert below_v1(DETECTING, sent, "dr") == sent
        assert below_v1(DETECTING, sent, "v03") == sent
        assert below_v1(DETECTING, ["acme", "tasks"], "v10") == ["acme", "tasks"]
        assert below_v1(MOUNTS["v10"], sent, "v10") == sent

    @rows("path", [pytest.param(p, id=f"1.7-strict-{p}") for p in UNPREFIXED])
    def test_without_prefix_needs_1_0_to_the_letter(self, path: str) -> None:
        for version in ("", "0.3"):
            assert routed(path, V10_MESSAGE, version, switches=STRICT) is VersionNotSupported
        assert routed(path, V10_MESSAGE, "1.0", switches=STRICT) == "v10"

    @rows("path", [pytest.param(p, id=f"1.7-old-{p}") for p in UNPREFIXED])
    @rows("version", ["0.0", "0.1", "0.2"])
    def test_without_prefix_is_nothing_to_the_older_ones(self, path: str, version: str) -> None:
        assert routed(path, {}, version) is VersionNotSupported


# --- how a refused version is told ----------------------------------------------------------------


class TestARefusedVersion:
    @staticmethod
    def told(method: str, params: object = None) -> Mapping[str, Any]:
        return DIALECTS[error_dialect(DETECTING, method, params)].error(refuse_version("0.5"))

    @rows(
        "method",
        [
            *(pytest.param(m, id=f"6.8-PascalCase-{m}") for m in (*J11, "Create")),
            pytest.param("Nonsense", id="6.8-unknown"),
            pytest.param("", id="6.8-no-method"),
        ],
    )
    @rows("params", [None, [], "x", {}, V10_MESSAGE, {**DR_MESSAGE, "tenant": ""}])
    def test_of_pascal_case_is_told_as_1_0_has_it(self, method: str, params: object) -> None:
        error = self.told(method, params)
        assert (error["code"], error["message"]) == (-32009, "Version not supported")
        (info,) = error["data"]
        assert info["reason"] == "VERSION_NOT_SUPPORTED"
        assert info["metadata"] == {
            "requestedVersion": "0.5",
            "supportedVersions": "1.0,0.3,0.2,0.1,0.0",
        }

    @rows("mark", [pytest.param(m, id=f"6.8-draft-{m}") for m in DRAFT])
    def test_of_a_draft_is_told_in_an_object(self, mark: str) -> None:
        error = self.told("SendMessage", DRAFT[mark])
        assert (error["code"], error["message"]) == (-32009, "Version not supported")
        assert error["data"]["supportedVersions"] == ["1.0", "0.3", "0.2", "0.1", "0.0"]

    @rows(
        "method",
        [
            pytest.param(m, id=f"6.8-slash-{m}")
            for m in ("agent/getCard", "tasks/send", "tasks/pushNotification/set", *J6, *J7)
        ],
    )
    @rows("params", [None, DR_MESSAGE, V10_MESSAGE])
    def test_of_a_slash_method_is_told_bare(self, method: str, params: object) -> None:
        assert self.told(method, params) == {"code": -32009, "message": "Version not supported"}

    @rows(
        "path",
        [
            pytest.param(p, id=f"6.8-{p}")
            for p in (
                *(SEND, STREAM, "v1/tasks", "v1/tasks/list", "v1/extendedAgentCard", "v1/nonsense"),
                *("v1", *BELOW_TASKS),
            )
        ],
    )
    def test_below_v1_is_told_in_problem_details(self, path: str) -> None:
        code = error_dialect_of_route(DETECTING, path)
        fault = refuse_version("0.5")
        refusal = DIALECTS[code].rest.refusal(fault) if code else refuse(fault, PLAIN)
        body = json.loads(refusal.body)
        assert (refusal.status, refusal.media_type) == (400, "application/problem+json")
        assert body["type"] == "https://a2a-protocol.org/errors/version-not-supported"
        assert (body["title"], body["status"]) == ("Version not supported", 400)
        assert body["supportedVersions"] == ["1.0", "0.3", "0.2", "0.1", "0.0"]
        if not code:  # good for both readers (§6.5)
            assert (body["code"], body["message"]) == (-32009, "Version not supported")

    @rows(
        "path",
        [pytest.param(p, id=f"6.8-{p}") for p in ("v1/card", "v1/agent/authenticatedExtendedCard")],
    )
    def test_where_0_3_alone_is_spoken_is_told_as_0_3_has_it(self, path: str) -> None:
        """§6.5 rather than §6.8: nobody else asks there."""
        refusal = DIALECTS[error_dialect_of_route(DETECTING, path)].rest.refusal(
            refuse_version("0.5")
        )
        assert refusal.status == 400
        assert json.loads(refusal.body) == {
            "code": -32009,
            "message": "Version not supported",
            "type": "VersionNotSupportedError",
        }

    @rows("path", [pytest.param(p, id=f"6.8-{p}") for p in UNPREFIXED])
    def test_elsewhere_is_told_as_1_0_has_it(self, path: str) -> None:
        refusal = DIALECTS[error_dialect_of_route(DETECTING, path)].rest.refusal(
            refuse_version("0.5")
        )
        error = json.loads(refusal.body)["error"]
        assert (refusal.status, error["code"], error["status"]) == (400, 400, "FAILED_PRECONDITION")
        assert error["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.just("TASK_STATE_WORKING"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(params=st.dictionaries(st.sampled_from(sorted(UNMARKED)), _JSON))
def test_parameters_without_marks_bear_none_whatever_their_values(params: dict[str, Any]) -> None:
    assert not is_final(params)
    assert not is_draft(params, final=False)
