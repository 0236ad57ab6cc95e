"""A2A 1.0 answers: the names, wrappers and absences of the wire, and that reading undoes writing."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.dialects import DIALECTS, Subject
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound
from a2a_tasks.protocol.jsontext import read, write
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import (
    Artifact,
    ArtifactUpdate,
    Message,
    Part,
    Raw,
    Role,
    Task,
    TaskPage,
    TaskState,
    TaskStatus,
)

V10 = DIALECTS["v10"]
SUBJECT = Subject("t", "c")
AT = "2026-01-01T00:00:00.000Z"
MESSAGE = b'{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}'
BARE = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING, timestamp=AT))
FULL = Task(
    id="t",
    context_id="c",
    status=TaskStatus(state=TaskState.COMPLETED, timestamp=AT, message=Raw(MESSAGE)),
    artifacts=[Raw(b'{"artifactId":"a","parts":[{"text":"x"}]}')],
    history=[Raw(MESSAGE)],
    metadata=Raw(b'{"k":1}'),
)

texts = st.text(st.characters(codec="utf-8"), max_size=12)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.none() | st.dictionaries(texts, json_values, max_size=3)
contents: st.SearchStrategy[dict[str, Any]] = st.one_of(
    texts.map(lambda text: {"text": text}),
    texts.map(lambda url: {"url": url}),
    st.binary(max_size=12).map(lambda raw: {"raw": base64.b64encode(raw).decode()}),
    json_values.map(lambda data: {"data": data}),
)
parts = st.builds(
    lambda content, metadata, filename, media_type: Part(
        **content, metadata=metadata, filename=filename, media_type=media_type
    ),
    contents,
    objects,
    st.none() | words,
    st.none() | words,
)
messages = st.builds(
    Message,
    message_id=words,
    context_id=st.none() | words,
    task_id=st.none() | words,
    role=st.sampled_from(list(Role)),
    parts=st.lists(parts, min_size=1, max_size=4).map(tuple),
    metadata=objects,
    extensions=st.lists(texts, max_size=2).map(tuple),
    reference_task_ids=st.lists(texts, max_size=2).map(tuple),
)


def first(item: Task | Raw) -> Any:
    """The one item a stream begins with."""
    (text,) = V10.first(SUBJECT, item, ended=False)
    return read(text)


class TestAMessage:
    @given(messages)
    def test_decoded_from_its_encoding_is_the_same(self, message: Message) -> None:
        body = read(b'{"message":' + write(message) + b"}")
        request = V10.decode("SendMessage", body)
        assert isinstance(request, SendMessageRequest)
        assert request.message == message

    @given(messages)
    def test_encoded_again_is_the_same_text(self, message: Message) -> None:
        text = write(message)
        request = V10.decode("SendMessage", {"message": read(text)})
        assert isinstance(request, SendMessageRequest)
        assert write(request.message) == text

    def test_leaves_out_what_is_not_there(self) -> None:
        message = Message(message_id="m", role=Role.USER, parts=(Part(text=""),))
        assert read(write(message)) == {
            "messageId": "m",
            "role": "ROLE_USER",
            "parts": [{"text": ""}],
        }

    def test_says_null_where_null_is_the_data(self) -> None:
        assert write(Part(data=None)) == b'{"data":null}'


class TestATask:
    def test_is_bare_from_get_and_cancel(self) -> None:
        for operation in ("GetTask", "CancelTask"):
            assert read(V10.answer(operation, BARE)) == {
                "id": "t",
                "contextId": "c",
                "status": {"state": "TASK_STATE_WORKING", "timestamp": AT},
            }

    def test_is_wrapped_from_send(self) -> None:
        """R-145."""
        assert read(V10.answer("SendMessage", BARE)).keys() == {"task"}

    def test_is_wrapped_at_the_beginning_of_a_stream(self) -> None:
        """R-008."""
        assert first(BARE) == {"task": read(V10.answer("GetTask", BARE))}

    def test_has_stored_text_spliced_in(self) -> None:
        assert read(V10.answer("GetTask", FULL)) == {
            "id": "t",
            "contextId": "c",
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": AT, "message": read(MESSAGE)},
            "artifacts": [{"artifactId": "a", "parts": [{"text": "x"}]}],
            "history": [read(MESSAGE)],
            "metadata": {"k": 1},
        }

    @pytest.mark.parametrize("state", TaskState)
    def test_has_the_name_of_the_proto_for_a_state(self, state: TaskState) -> None:
        """R-141."""
        task = Task(id="t", context_id="c", status=TaskStatus(state=state, timestamp=AT))
        assert read(V10.answer("GetTask", task))["status"]["state"] == f"TASK_STATE_{state.name}"

    @pytest.mark.parametrize("state", TaskState)
    def test_has_a_word_for_people(self, state: TaskState) -> None:
        assert state.word == state.name.lower().replace("_", "-")


class TestADirectMessage:
    def test_is_wrapped(self) -> None:
        """R-145."""
        wrapped = {"message": read(MESSAGE)}
        assert read(V10.answer("SendMessage", Raw(MESSAGE))) == wrapped
        assert first(Raw(MESSAGE)) == wrapped


class TestAPage:
    def test_has_all_four_members_always(self) -> None:
        """R-026, R-028."""
        page = TaskPage(tasks=[], next_page_token="", page_size=50, total_size=0)
        assert read(V10.answer("ListTasks", page)) == {
            "tasks": [],
            "nextPageToken": "",
            "pageSize": 50,
            "totalSize": 0,
        }

    def test_may_say_that_a_task_has_no_artifacts(self) -> None:
        """R-027: only when they were asked for."""
        task = Task(id="t", context_id="c", status=BARE.status, artifacts=[])
        page = TaskPage(tasks=[BARE, task], next_page_token="n", page_size=2, total_size=3)
        first, second = read(V10.answer("ListTasks", page))["tasks"]
        assert "artifacts" not in first
        assert second["artifacts"] == []


class TestAStreamItem:
    def test_of_a_status_carries_the_ids_and_no_final(self) -> None:
        said = {"status": {"state": "TASK_STATE_WORKING", "timestamp": AT}}
        event = LogEvent(number=2, kind=EventKind.STATUS, body=json.dumps(said))
        assert read(V10.event(SUBJECT, event, final=False)) == {
            "statusUpdate": {"taskId": "t", "contextId": "c", **said}
        }

    def test_of_an_artifact_carries_the_ids_and_flags(self) -> None:
        update = ArtifactUpdate(
            artifact=Artifact(artifact_id="a", parts=(Part(text="x"),)),
            append=True,
            last_chunk=True,
        )
        event = LogEvent(number=2, kind=EventKind.ARTIFACT, body=write(update).decode())
        assert read(V10.event(SUBJECT, event, final=False)) == {
            "artifactUpdate": {
                "taskId": "t",
                "contextId": "c",
                "artifact": {"artifactId": "a", "parts": [{"text": "x"}]},
                "append": True,
                "lastChunk": True,
            }
        }

    def test_never_says_that_a_flag_is_false(self) -> None:
        update = ArtifactUpdate(artifact=Artifact(artifact_id="a", parts=(Part(text="x"),)))
        assert read(write(update)).keys() == {"artifact"}

    @given(words, words, texts)
    def test_is_one_line_of_json_whatever_is_in_it(
        self, task: str, context: str, text: str
    ) -> None:
        update = ArtifactUpdate(artifact=Artifact(artifact_id="a", parts=(Part(text=text),)))
        event = LogEvent(number=1, kind=EventKind.ARTIFACT, body=write(update).decode())
        item = V10.event(Subject(task, context), event, final=False)
        assert b"\n" not in item
        assert b"\r" not in item
        members = read(item)["artifactUpdate"]
        assert (members["taskId"], members["contextId"]) == (task, context)
        assert members["artifact"]["parts"] == [{"text": text}]


class TestTheDialect:
    def test_is_called_1_0(self) -> None:
        assert (V10.code, V10.version) == ("v10", "1.0")

    def test_tells_errors_in_typed_details(self) -> None:
        """R-182."""
        for error in (TaskNotFound(taskId="t"), InvalidParams.field("a", "is required")):
            assert V10.error(error)["data"] == error.details
            assert all("@type" in detail for detail in error.details)
