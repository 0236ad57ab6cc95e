"""References to files in stored text: links take their place in parts, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.files import (
    SCHEME,
    file_of,
    in_answer,
    in_event,
    in_task,
    in_text,
    reference,
    refers,
)
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent, fold
from a2a_tasks.protocol.values import (
    Message,
    Part,
    Raw,
    Role,
    Task,
    TaskPage,
    TaskState,
    TaskStatus,
)

FILE = "0123456789abcdef" * 2
REFERENCE = f"a2a-file:{FILE}"
FILE_PART = {"url": REFERENCE, "filename": "a.png", "mediaType": "image/png"}

#: JSON with the mark in every place a stranger could put it.
texts = st.sampled_from([REFERENCE, f'"url":"{REFERENCE}"', f'{{"url":"{REFERENCE}"}}', "", "x"])
leaves = st.one_of(texts, st.integers(-5, 5), st.none(), st.booleans())
names = st.sampled_from(["url", "parts", "status", "message", "artifact", "a"])
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)


def link(file: str) -> str:
    """A link that tells of itself."""
    return f"https://host/{file}"


def message(*parts: Any, **more: Any) -> bytes:
    """A stored message with these parts."""
    return write({"messageId": "m", "role": "ROLE_USER", "parts": list(parts), **more})


def linked(text: bytes) -> Any:
    """The text with links, parsed."""
    return json.loads(in_text(text, link))


class TestALink:
    def test_takes_the_place_of_a_reference_and_leaves_the_rest_of_the_part(self) -> None:
        (text, part) = linked(message({"text": "x"}, FILE_PART))["parts"]
        assert part == {**FILE_PART, "url": link(FILE)}
        assert text == {"text": "x"}

    def test_is_put_into_events_of_artifacts_and_statuses(self) -> None:
        artifact = write({"artifact": {"artifactId": "a", "parts": [FILE_PART]}, "append": True})
        assert linked(artifact)["artifact"]["parts"][0]["url"] == link(FILE)
        said = json.loads(message(FILE_PART))
        status = write({"status": {"state": "TASK_STATE_WORKING", "message": said}})
        assert linked(status)["status"]["message"]["parts"][0]["url"] == link(FILE)

    @given(data=documents, metadata=st.dictionaries(names, documents, max_size=3))
    def test_never_changes_data_metadata_or_text(self, data: Any, metadata: Any) -> None:
        strange = [{"data": data, "metadata": metadata}, {"text": REFERENCE}, {"data": FILE_PART}]
        text = message(*strange, FILE_PART, metadata=metadata)
        changed = [*strange, {**FILE_PART, "url": link(FILE)}]
        assert linked(text) == {**json.loads(text), "parts": changed}

    @given(st.lists(documents, max_size=3))
    def test_is_not_looked_for_where_there_is_no_reference(self, data: list[Any]) -> None:
        text = message(*({"data": item} for item in data), {"text": "x"})
        if not refers(text):
            assert in_text(text, link) is text

    def test_is_not_made_of_what_only_looks_like_a_reference(self) -> None:
        odd = {"url": f"{SCHEME}{FILE}0"}
        assert linked(message(odd))["parts"] == [odd]

    def test_numbers_and_texts_beside_it_stay_to_the_letter(self) -> None:
        text = b'{"parts":[{"url":"%s"},{"data":[1.0,1e2,18446744073709551615,"\\u00e9"]}]}'
        found = in_text(text % REFERENCE.encode(), link)
        assert b'[1.0,1e2,18446744073709551615,"\\u00e9"]' in found


class TestAnswers:
    def test_a_task_has_links_in_history_artifacts_and_status(self) -> None:
        said, artifact = message(FILE_PART), write({"artifactId": "a", "parts": [FILE_PART]})
        task = Task(
            id="t",
            context_id="c",
            status=TaskStatus(state=TaskState.WORKING, message=Raw(said), timestamp="now"),
            history=[Raw(message({"text": "x"})), Raw(said)],
            artifacts=[Raw(artifact)],
        )
        for shown in (in_task(task, link), in_answer(task, link)):
            assert write(shown).count(link(FILE).encode()) == 3
            assert not refers(write(shown))
        page = TaskPage(tasks=[task], next_page_token="", page_size=1, total_size=1)
        assert write(in_answer(page, link)).count(link(FILE).encode()) == 3
        assert bytes(in_answer(Raw(said), link)) == in_text(said, link)
        assert in_answer(None, link) is None

    def test_a_task_without_files_is_given_back_itself(self) -> None:
        status = TaskStatus(state=TaskState.WORKING, timestamp="now")
        task = Task(id="t", context_id="c", status=status, history=[Raw(message({"text": "x"}))])
        assert in_task(task, link) is task

    def test_replay_equals_read_with_links_too(self) -> None:
        status = TaskStatus(state=TaskState.WORKING, timestamp="2026-01-01T00:00:00.000Z")
        task = Task(id="t", context_id="c", status=status)
        bodies = [
            write({"artifact": {"artifactId": "a", "parts": [FILE_PART]}, "append": append})
            for append in (False, True)
        ]
        events = [
            LogEvent(number=n, kind=EventKind.ARTIFACT, body=body.decode())
            for n, body in enumerate(bodies, 2)
        ]
        read = in_task(fold(task, events), link)
        assert read == fold(task, [in_event(event, link) for event in events])


class TestAReference:
    def test_is_told_from_other_urls(self) -> None:
        assert file_of(Part(url=reference(FILE))) == FILE
        for part in (Part(url="https://example.com/x"), Part(text=REFERENCE), Part(url=SCHEME)):
            assert file_of(part) is None

    def test_is_written_so_that_it_is_found(self) -> None:
        said = Message(message_id="m", role=Role.USER, parts=(Part(url=reference(FILE)),))
        assert refers(write(said))
