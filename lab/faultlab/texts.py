"""Texts: what a client reads, however it reads, is what one uninterrupted attempt of that agent says.

The lab's agents say their attempt before each word; without it, every attempt says the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lab.faultlab.dump import TaskRow
from lab.faultlab.evidence import WAITING, Evidence, Stream
from lab.faultlab.folding import ARTIFACT, Folded, fold

__all__ = [
    "completed_tasks_say_all",
    "streams_add_up_to_the_text",
    "what_is_read_is_said_once",
]

Findings = Iterator[tuple[str, Sequence[Any]]]
#: What one attempt says of a message: the text of each artifact, in order.
Says = Callable[[str], list[str]]

_MARK = re.compile(r"\ba\d+:")
_DONE = frozenset({"TASK_STATE_COMPLETED", "completed"})


def _count(text: str) -> int:
    return int(text.split()[0])


def _tick(text: str) -> list[str]:
    return ["".join(f"{n};" for n in range(_count(text)))]


def _tell(text: str) -> list[str]:
    spoken = "".join(f"{n};{n} kept;" for n in range(_count(text)))
    notes = "".join(f"{n};{n} rested;" for n in range(_count(text)))
    return [f"{spoken}slept;done;", notes, notes]


def _answer(text: str) -> list[str]:
    return ["thanks;bye;" if "answer" in text else "well;so;"]


def _nothing(_: str) -> list[str]:
    return []


SAYS: Mapping[str, Says] = {
    "lab-short": lambda _: ["0;1;"],
    **dict.fromkeys(("lab-stream", "lab-thread", "lab-large"), _tick),
    "lab-tell": _tell,
    "lab-ask": _answer,
    **dict.fromkeys(("lab-steps", "lab-park", "lab-delegate", "lab-careful"), _nothing),
    **dict.fromkeys(("lab-forever", "lab-blocking", "lab-poison", "lab-locking"), _nothing),
    **dict.fromkeys(("lab-hungry", "lab-tree", "lab-middle", "lab-leaf"), _nothing),
}
#: The words with which a task is completed, by agent.
LAST = {"lab-steps": "done", "lab-park": "done", "lab-blocking": "1", "lab-locking": "1"}


def completed_tasks_say_all(e: Evidence) -> Findings:
    """A completed task, or one that waits for its client, says all; any other says a beginning of it."""
    for task, wanted in _known(e):
        folded = fold(e.log(task))
        whole = task.state in _DONE | WAITING
        if text := _differs(f"{task.id} says", folded.artifacts.values(), wanted, whole=whole):
            yield text, (task, *_pieces(e, task)[-2:])
        last = LAST.get(task.agent)
        if task.state in _DONE and last and _say((folded.status or {}).get("message")) != last:
            yield f"{task.id} ended with other words than {last}", (task, folded.status)


def what_is_read_is_said_once(e: Evidence) -> Findings:
    """The Task that a client is shown, in any dialect, has a beginning of the text, and all of it at the end."""
    said = {task.id: (task, wanted) for task, wanted in _known(e)}
    for record in e.seen("got", "read"):
        if record.get("task") not in said:
            continue
        task, wanted = said[record["task"]]
        whole = record["view"]["status"]["state"] in _DONE
        shown = record["view"].get("artifacts") or []
        where = f"{task.id} was read in {record.get('dialect', '1.0')} as"
        if text := _differs(where, shown, wanted, whole=whole):
            yield text, (record, task)


def streams_add_up_to_the_text(e: Evidence) -> Findings:
    """A client that joins what a stream shows, also one that was resumed, comes to the same text."""
    said = {task.id: (task, wanted) for task, wanted in _known(e)}
    for stream in e.streams:
        if stream.task in said:
            task, wanted = said[stream.task]
            joined, whole = _join(e, task, stream)
            where = f"a stream of {task.id} adds up to"
            if text := _differs(where, joined.artifacts.values(), wanted, whole=whole):
                yield text, (stream.opened, *stream.shown[-2:])


def _known(e: Evidence) -> Iterator[tuple[TaskRow, list[str]]]:
    """The tasks whose messages clients told of, with what one attempt for each message says."""
    sent = {str(r["key"]): str(r["text"]) for r in e.seen("sent") if r.get("text")}
    for task in e.dump.tasks:
        texts = [sent.get(key.key) for key in e.keys(task)]
        if texts and None not in texts and task.agent in SAYS:
            yield task, [text for one in texts for text in SAYS[task.agent](str(one))]


def _differs(
    where: str, artifacts: Iterable[Mapping[str, Any]], wanted: list[str], *, whole: bool
) -> str:
    """In words, what is not as it should be; nothing if all is well."""
    found = [_say(artifact) for artifact in artifacts]
    begins = len(found) <= len(wanted) and all(map(str.startswith, wanted, found))
    if found == wanted or (begins and not whole):
        return ""
    return f"{where} {found}, and one attempt says {wanted}"


def _say(said: Mapping[str, Any] | None) -> str:
    """The text of an artifact or a message without the numbers of attempts, and without filling."""
    parts = (said or {}).get("parts", [])
    return "".join(_MARK.sub("", part.get("text", "")).rstrip(".") for part in parts)


def _join(e: Evidence, task: TaskRow, stream: Stream) -> tuple[Folded, bool]:
    """What a reader of the stream has, if it had all before that; and whether it was told that the task is completed."""
    joined, state = fold(e.log(task), stream.opened.get("after") or 0), ""
    for frame in stream.shown:
        body = frame.get("body", {})
        if frame.get("kind") == "task":
            joined.show(body)
        elif frame.get("kind") == "artifact":
            joined.add(body)
        state = (body.get("status") or {}).get("state", state)
    return joined, state in _DONE


def _pieces(e: Evidence, task: TaskRow) -> list[Any]:
    return [event for event in e.log(task) if event.kind == ARTIFACT]
