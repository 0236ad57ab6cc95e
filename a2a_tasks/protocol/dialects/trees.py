"""The writers of the older dialects: stored 1.0 text is parsed into trees, respelled, and written.

Values that a dialect cannot express degrade as decision 9 and `docs/reference/protocol-support.md` say.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from a2a_tasks.protocol import errors
from a2a_tasks.protocol.dialects.dialect import Dialect, DialectRefusal, Result, Subject, by_kind
from a2a_tasks.protocol.dialects.reading import COMPAT
from a2a_tasks.protocol.errors import A2AError, InvalidParams
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent
from a2a_tasks.protocol.values import (
    UNSET,
    PushConfig,
    PushConfigPage,
    Raw,
    Role,
    Task,
    TaskPage,
    TaskState,
    TaskStatus,
    UnsetType,
)

__all__ = [
    "INTERNAL",
    "INVALID",
    "Tree",
    "TreeDialect",
    "write_tagged",
    "violations",
    "write_wrapped",
]

Tree = dict[str, Any]
_decode = msgspec.json.Decoder(dict[str, Any]).decode
#: The message for a state unknown to the dialect, when the agent gave none.
_SUBSTITUTES = {
    TaskState.REJECTED: "The task was rejected.",
    TaskState.AUTH_REQUIRED: "Authentication is required.",
}


def _common(part: Mapping[str, Any], **more: Any) -> Tree:
    metadata = {**part.get("metadata", {}), **more}
    return {"metadata": metadata} if metadata else {}


def _attributes(part: Mapping[str, Any]) -> Tree:
    """Return the file attributes of a text or data part, which the older parts have no members for (P14)."""
    return {key: part[key] for key in ("mediaType", "filename") if key in part}


def _object(part: Mapping[str, Any]) -> tuple[Mapping[str, Any], Tree]:
    """Return the value of a data part as an object, and the mark of a wrapped value (P15)."""
    value = part["data"]
    return (value, {}) if isinstance(value, Mapping) else ({"value": value}, {COMPAT: True})


def write_tagged(part: Mapping[str, Any], tag: str) -> Tree:
    """Return a part with its discriminator `type` or `kind` (0.0 to 0.3)."""
    if "text" in part:
        return {tag: "text", "text": part["text"], **_common(part, **_attributes(part))}
    if "data" in part:
        value, mark = _object(part)
        return {tag: "data", "data": value, **_common(part, **mark, **_attributes(part))}
    file = {"bytes": part["raw"]} if "raw" in part else {"uri": part["url"]}
    return {tag: "file", "file": file | _file_names(part, "mimeType"), **_common(part)}


def write_wrapped(part: Mapping[str, Any], media_type: str) -> Tree:
    """Return a part without discriminator (the draft; 0.3 as ProtoJSON)."""
    if "text" in part:
        return {"text": part["text"], **_common(part, **_attributes(part))}
    if "data" in part:
        value, mark = _object(part)
        return {"data": {"data": value}, **_common(part, **mark, **_attributes(part))}
    file = {"fileWithBytes": part["raw"]} if "raw" in part else {"fileWithUri": part["url"]}
    return {"file": file | _file_names(part, media_type), **_common(part)}


def _file_names(part: Mapping[str, Any], media_type: str) -> Tree:
    named = {"name": part.get("filename"), media_type: part.get("mediaType")}
    return {key: value for key, value in named.items() if value is not None}


def violations(fault: A2AError) -> list[Tree]:
    """Return the bad fields of a request, as the older dialects list them."""
    found = fault.violations if isinstance(fault, InvalidParams) else ()
    return [{"field": path, "message": text} for path, text in found]


class TreeDialect(Dialect):
    """The base class of the dialects before 1.0."""

    states: ClassVar[Mapping[TaskState, str]]
    roles: ClassVar[Mapping[Role, str]] = {Role.USER: "user", Role.AGENT: "agent"}
    #: Codes and titles of errors that have another name in the dialect, or do not exist there.
    faces: ClassVar[Mapping[type[A2AError], tuple[int, str]]] = {}
    #: HTTP statuses of errors where they differ from 1.0.1.
    statuses: ClassVar[Mapping[type[A2AError], int]] = {}

    # -- objects ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def part(self, part: Tree) -> Tree:
        """Return a part of a message or artifact."""

    @abstractmethod
    def message(self, message: Tree) -> Tree:
        """Return a message."""

    @abstractmethod
    def artifact(self, artifact: Tree, position: int) -> Tree:
        """Return an artifact."""

    @abstractmethod
    def task(self, task: Task) -> Tree:
        """Return a task."""

    @abstractmethod
    def status_event(self, subject: Subject, status: Tree, more: Tree, *, final: bool) -> Tree:
        """Return a status update; `more` are the event's other members."""

    @abstractmethod
    def artifact_event(self, subject: Subject, update: Tree) -> Tree:
        """Return an artifact update."""

    @abstractmethod
    def push_config(self, config: PushConfig) -> Tree:
        """Return a push config with its task."""

    def push_configs(self, page: PushConfigPage) -> Any:
        """Return the push configs of a task."""
        return [self.push_config(config) for config in page.configs]

    def page(self, page: TaskPage) -> Any:
        """Return a page of tasks (A2A 1.0 §3.1.4)."""
        tasks = [self.task(task) for task in page.tasks]
        counted = len(tasks) if self.switches.list_page_size_returns_count else page.page_size
        return {
            "tasks": tasks,
            "nextPageToken": page.next_page_token,
            "pageSize": counted,
            "totalSize": page.total_size,
        }

    def wrap(self, kind: str, tree: Tree) -> Tree:
        """Wrap the result of a send or a stream item: `kind` is task, message, statusUpdate or artifactUpdate."""
        return tree

    # -- pieces ----------------------------------------------------------------------------------------------------

    def artifacts(self, artifacts: list[Raw] | UnsetType) -> list[Tree]:
        """Return the artifacts of a task, in order of creation; none where they were not requested."""
        found = [] if artifacts is UNSET else artifacts
        return [self.artifact(_decode(text), position) for position, text in enumerate(found)]

    def messages(self, messages: list[Raw] | UnsetType) -> list[Tree]:
        """Return the messages of a history."""
        return [] if messages is UNSET else [self.message(_decode(text)) for text in messages]

    def status(self, state: TaskState, message: Tree | None, timestamp: str) -> Tree:
        """Return a task's status; a state unknown to the dialect is named in the message, too (P1, P2)."""
        if state in self.features.degraded:
            message = message or {
                "role": Role.AGENT.value,
                "messageId": f"{state.word}-{timestamp}",
                "parts": [{"text": _SUBSTITUTES[state]}],
            }
            message["metadata"] = {**message.get("metadata", {}), "a2aState": state.word}
        members = {"message": self.message(message)} if message else {}
        return {"state": self.states[state], **members, "timestamp": timestamp}

    def status_of(self, status: TaskStatus) -> Tree:
        """Return the status of a task's value."""
        message = None if status.message is None else _decode(status.message)
        return self.status(status.state, message, status.timestamp)

    # -- answers ---------------------------------------------------------------------------------------------------

    def answer(self, operation: str, result: Result) -> bytes:
        return write(self._tree(operation, result))

    def _tree(self, operation: str, result: Result) -> Any:
        match result:
            case Task():
                tree = self.task(result)
                return self.wrap("task", tree) if operation == "SendMessage" else tree
            case Raw():
                return self.wrap("message", self.message(_decode(result)))
            case TaskPage():
                return self.page(result)
            case PushConfig():
                return self.push_config(result)
            case PushConfigPage():
                return self.push_configs(result)
        return result

    def first(self, subject: Subject, item: Task | Raw, *, ended: bool) -> list[bytes]:
        if isinstance(item, Raw):
            return [write(self.wrap("message", self.message(_decode(item))))]
        task = write(self.wrap("task", self.task(item)))
        return [task, self._write_status(subject, item, final=True)] if ended else [task]

    def _write_status(self, subject: Subject, task: Task, *, final: bool) -> bytes:
        """Return a status event with the present status of a task."""
        tree = self.status_event(subject, self.status_of(task.status), {}, final=final)
        return write(self.wrap("statusUpdate", tree))

    def event(self, subject: Subject, event: LogEvent, *, final: bool) -> bytes:
        body = _decode(event.body)
        if event.kind in {EventKind.STATUS, EventKind.TOOL}:
            status = body.pop("status")
            tree = self.status(
                TaskState(status["state"]), status.get("message"), status["timestamp"]
            )
            return write(
                self.wrap("statusUpdate", self.status_event(subject, tree, body, final=final))
            )
        return write(self.wrap("artifactUpdate", self.artifact_event(subject, body)))

    # -- errors ----------------------------------------------------------------------------------------------------

    def face(self, fault: A2AError) -> tuple[int, str]:
        """Return code and title of an error."""
        return by_kind(self.faces, fault) or (fault.code, fault.title)

    def detail(self, fault: A2AError) -> Any:
        """Return the `data` of an error, besides code and title; None = no `data`."""
        bad = violations(fault)
        if bad:
            return {"errors": bad}
        if isinstance(fault, errors.IdempotencyConflict):
            return {"reason": fault.reason, "detail": fault.message}
        return None if fault.message == self.face(fault)[1] else {"detail": fault.message}

    def error(self, fault: A2AError) -> Mapping[str, Any]:
        data = self.detail(fault)
        code, title = self.face(fault)
        return {"code": code, "message": title} | ({} if data is None else {"data": data})

    def http_status(self, fault: A2AError) -> int:
        """Return the HTTP status of an error."""
        return by_kind(self.statuses, fault) or fault.http_status

    def refusal(self, fault: A2AError) -> DialectRefusal:
        return DialectRefusal(self.http_status(fault), write(self.error(fault)))


#: Codes and titles that stand in the older dialects for errors that they do not have.
INVALID = (errors.InvalidParams.code, errors.InvalidParams.title)
INTERNAL = (errors.InternalError.code, errors.InternalError.title)
