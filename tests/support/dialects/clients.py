"""A client of every wire, written from the reference alone: nothing of the host's own dialects is used here.

Each reads answers and streams strictly (every member must be one its generation knows, spelt its way) and tells
them as one neutral view, so that what two generations say of a task can be compared.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

from tests.support.bindings.client import Client, Event, Response, Stream

__all__ = [
    "BY_NAME",
    "WIRES",
    "ArtifactUpdate",
    "Made",
    "Piece",
    "Refused",
    "Said",
    "Status",
    "StatusUpdate",
    "View",
    "Watch",
    "Wire",
]

#: R-142: UTC with milliseconds, also in the dialects that ask for less (dialects §4.11).
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
WORDS = (
    "submitted",
    "working",
    "input-required",
    "auth-required",
    "completed",
    "failed",
    "canceled",
    "rejected",
)
#: What the oldest dialects say for the states they lack (dialects §9.1, P1 and P2).
DEGRADED = {"rejected": "failed", "auth-required": "input-required"}
_numbers = itertools.count(1)


# --- the neutral view ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A part, whatever spelled it: `kind` is text, bytes, uri or data."""

    kind: str
    value: Any
    media_type: str = ""
    filename: str = ""


@dataclass(frozen=True)
class Said:
    """A message: who said what."""

    role: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Status:
    """A status. `word` is the state as A2A 1.0 calls it, `shown` what the wire's own state says."""

    word: str
    at: str
    said: tuple[Piece, ...] = ()
    shown: str = field(default="", compare=False)


@dataclass(frozen=True)
class Made:
    """An artifact. `index` is its place, where the wire tells it."""

    id: str
    name: str
    pieces: tuple[Piece, ...]
    index: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class View:
    """A task as a client sees it. `before` is the id of the ended task it took its name from, where that is told."""

    id: str
    context: str
    status: Status
    made: tuple[Made, ...] = ()
    history: tuple[Said, ...] = ()
    before: str = field(default="", compare=False)


@dataclass(frozen=True)
class StatusUpdate:
    """A status event. `final` is None where the wire has no such member."""

    task: str
    status: Status
    final: bool | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ArtifactUpdate:
    """An artifact event: a whole artifact or a piece of one."""

    task: str
    made: Made
    append: bool = False
    last: bool = False


Item = View | StatusUpdate | ArtifactUpdate


class Refused(AssertionError):
    """The host answered with an error where a test wanted a result."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"{response.status}: {response.body.decode()}")
        self.response = response


def folded(items: Iterable[Item]) -> View:
    """The task a stream tells of: its first item, and all that came after (law 6)."""
    first, *rest = items
    if isinstance(first, StatusUpdate):
        first = View(first.task, "", first.status)
    assert isinstance(first, View), first
    status, made = first.status, {one.id: one for one in first.made}
    for item in rest:
        if isinstance(item, StatusUpdate):
            status = item.status
        elif isinstance(item, ArtifactUpdate):
            known = made.get(item.made.id) if item.append else None
            grown = replace(known, pieces=known.pieces + item.made.pieces) if known else item.made
            made[grown.id] = grown
    return replace(first, status=status, made=tuple(made.values()))


# --- parts (dialects §4.4) ------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """How a wire spells its parts. Files are objects in all but A2A 1.0."""

    #: The member that says which kind it is: `type`, `kind`, or none.
    tag: str = ""
    by_value: str = "bytes"
    by_reference: str = "uri"
    media: str = "mimeType"
    #: Is data an object in an object?
    boxed: bool = False
    #: Are files base64 of base64, as the SDKs of 0.3 have it over HTTP (dialects §3.4)?
    doubled: bool = False

    def written(self, piece: Piece) -> dict[str, Any]:
        """A part as a client of this wire writes it."""
        if piece.kind == "text":
            part: dict[str, Any] = {"text": piece.value}
        elif piece.kind == "data":
            part = self._data(piece.value)
        else:
            part = {"file": self._file(piece)}
        if self.tag:
            part[self.tag] = next(iter(part))
        return part

    def _data(self, value: Any) -> dict[str, Any]:
        """Only objects are data; others travel in one (dialects §9.2, U13)."""
        if isinstance(value, dict):
            return {"data": {"data": value} if self.boxed else value}
        wrapped = {"value": value}
        marked = {"metadata": {"data_part_compat": True}}
        return {"data": {"data": wrapped} if self.boxed else wrapped, **marked}

    def _file(self, piece: Piece) -> dict[str, str]:
        names = {self.media: piece.media_type, "name": piece.filename}
        given = {key: value for key, value in names.items() if value}
        if piece.kind == "uri":
            return {self.by_reference: piece.value, **given}
        text = base64.b64encode(piece.value)
        return {
            self.by_value: (base64.b64encode(text) if self.doubled else text).decode(),
            **given,
        }

    def read(self, part: Any) -> Piece:
        """A part of an answer."""
        left = dict(part)
        metadata = left.pop("metadata", None)
        assert metadata != {}, part
        metadata = dict(metadata or {})
        tagged = left.pop(self.tag, None) if self.tag else None
        ((kind, content),) = left.items()
        assert kind in {"text", "file", "data"}, part
        assert tagged == (kind if self.tag else None), part
        if kind == "file":
            piece = self._read_file(content)
        elif kind == "text":
            assert isinstance(content, str), part
            piece = Piece("text", content, **_labels(metadata))
        else:
            piece = self._read_data(content, metadata)
        assert not metadata, f"members nobody put there: {part}"
        return piece

    def _read_data(self, content: Any, metadata: dict[str, Any]) -> Piece:
        if self.boxed:
            assert content.keys() == {"data"}, content
            content = content["data"]
        assert isinstance(content, dict), content
        if "data_part_compat" in metadata:
            assert metadata.pop("data_part_compat") is True
            assert content.keys() == {"value"}, content
            content = content["value"]
            assert not isinstance(content, dict), content
        return Piece("data", content, **_labels(metadata))

    def _read_file(self, content: Mapping[str, Any]) -> Piece:
        assert (self.by_value in content) != (self.by_reference in content), content
        assert content.keys() <= {self.by_value, self.by_reference, self.media, "name"}, content
        assert all(isinstance(value, str) and value for value in content.values()), content
        about = {"media_type": content.get(self.media, ""), "filename": content.get("name", "")}
        if self.by_reference in content:
            return Piece("uri", content[self.by_reference], **about)
        value = base64.b64decode(content[self.by_value], validate=True)
        if self.doubled:
            value = base64.b64decode(value, validate=True)
        return Piece("bytes", value, **about)


class FlatParts(Parts):
    """A2A 1.0: one content member, and two labels on any of them."""

    NAMES = {"text": "text", "raw": "bytes", "url": "uri", "data": "data"}

    def written(self, piece: Piece) -> dict[str, Any]:
        """A part as a client of 1.0 writes it."""
        name = next(name for name, kind in self.NAMES.items() if kind == piece.kind)
        value = base64.b64encode(piece.value).decode() if name == "raw" else piece.value
        labels = {"mediaType": piece.media_type, "filename": piece.filename}
        return {name: value, **{key: label for key, label in labels.items() if label}}

    def read(self, part: Any) -> Piece:
        """A part of an answer."""
        left = dict(part)
        labels = _labels(left)
        ((name, value),) = left.items()
        if name != "data":
            assert isinstance(value, str), part
        decoded = base64.b64decode(value, validate=True) if name == "raw" else value
        return Piece(self.NAMES[name], decoded, **labels)


def _labels(members: dict[str, Any]) -> dict[str, str]:
    """Media type and file name, taken out of where they are written (dialects §9.1, P14)."""
    return {
        "media_type": members.pop("mediaType", ""),
        "filename": members.pop("filename", ""),
    }


# --- grammars (dialects §4) -----------------------------------------------------------------------


class Grammar:
    """How a generation spells its objects: here that of 0.2 and 0.3 over JSON-RPC."""

    #: States as they are spelt.
    states: Mapping[str, str] = {word: word for word in WORDS}
    #: Roles as they are spelt.
    roles: Mapping[str, str] = {"user": "user", "agent": "agent"}
    parts = Parts(tag="kind")
    #: Where a message has its parts.
    content = "parts"
    message_may = "contextId taskId referenceTaskIds extensions metadata"
    #: Do objects say what they are?
    kinds = True
    #: Does a status event say whether it is the last?
    finals = True
    #: States this generation has no word for.
    degraded: Mapping[str, str] = {}
    #: Does the client name the task?
    names_tasks = False
    #: Can a client ask not to wait?
    may_leave = True
    #: Is the history shown unasked?
    shows_history = True
    #: Does a stream begin with the Task?
    begins_with_task = True
    #: Can a task that has ended be subscribed to?
    follows_ended = True

    def object(self, document: Any, kind: str, needs: str, may: str = "") -> dict[str, Any]:
        """The members of an object: all it must have, none it must not, nothing null or empty."""
        assert isinstance(document, dict), document
        left = dict(document)
        if self.kinds and kind:
            assert left.pop("kind", None) == kind, document
        required = set(needs.split())
        assert required <= left.keys(), f"{required - left.keys()} missing: {document}"
        foreign = left.keys() - required - set(may.split())
        assert not foreign, f"{foreign} in {document}"
        assert all(value not in (None, [], {}) for value in left.values()), document
        return left

    def task(self, document: Any) -> View:
        """A Task (dialects §4.1)."""
        told = self.object(document, "task", "id contextId status", "artifacts history metadata")
        return self._view(told, told["contextId"])

    def _view(self, told: Mapping[str, Any], context: str) -> View:
        id_: str = told["id"]
        metadata = told.get("metadata", {})
        assert metadata.keys() <= {"predecessorTaskId"}, told
        return View(
            id_,
            context,
            self.status(told["status"], id_, context),
            tuple(self.artifact(one) for one in told.get("artifacts", ())),
            tuple(self.message(one, id_, context) for one in told.get("history", ())),
            metadata.get("predecessorTaskId", ""),
        )

    def status(self, document: Any, task: str, context: str) -> Status:
        """A TaskStatus (dialects §4.1, §4.2)."""
        told = self.object(document, "", "state timestamp", "message")
        assert MOMENT.fullmatch(told["timestamp"]), document
        word = self._word(told["state"])
        if "message" not in told:
            return Status(word, told["timestamp"], (), word)
        said = self.message(told["message"], task, context)
        assert said.role == "agent", document
        return Status(word, told["timestamp"], said.pieces, word)

    def _word(self, state: Any) -> str:
        (word,) = [word for word, spelt in self.states.items() if spelt == state]
        return word

    def message(self, document: Any, task: str, context: str) -> Said:
        """A Message of a task (dialects §4.3; §9.1, P26: its ids are filled in)."""
        told = self.object(document, "message", f"messageId role {self.content}", self.message_may)
        assert (told["taskId"], told["contextId"]) == (task, context), document
        assert not told.keys() & {"metadata", "extensions", "referenceTaskIds"}, document
        return self._said(told)

    def _said(self, told: Mapping[str, Any]) -> Said:
        (role,) = [role for role, spelt in self.roles.items() if spelt == told["role"]]
        return Said(role, tuple(self.parts.read(part) for part in told[self.content]))

    def artifact(self, document: Any) -> Made:
        """An Artifact (dialects §4.5)."""
        may = "name description extensions metadata"
        told = self.object(document, "", "artifactId parts", may)
        assert "metadata" not in told, document
        return self._made(told, told["artifactId"])

    def _made(self, told: Mapping[str, Any], id_: str) -> Made:
        pieces = tuple(self.parts.read(part) for part in told["parts"])
        return Made(id_, told.get("name", ""), pieces)

    def item(self, document: Any) -> Item:
        """An item of a stream (dialects §4.6)."""
        if document["kind"] == "task":
            return self.task(document)
        if document["kind"] == "status-update":
            return self.status_event(document)
        return self.artifact_event(document)

    def status_event(self, document: Any) -> StatusUpdate:
        """A TaskStatusUpdateEvent."""
        needs = "taskId contextId status" + (" final" if self.finals else "")
        told = self.object(document, "status-update", needs, "metadata")
        status = self.status(told["status"], told["taskId"], told["contextId"])
        return StatusUpdate(told["taskId"], status, told.get("final"))

    def artifact_event(self, document: Any) -> ArtifactUpdate:
        """A TaskArtifactUpdateEvent."""
        needs, may = "taskId contextId artifact", "append lastChunk metadata"
        told = self.object(document, "artifact-update", needs, may)
        return self._update(told["taskId"], self.artifact(told["artifact"]), told)

    @staticmethod
    def _update(task: str, made: Made, flags: Mapping[str, Any]) -> ArtifactUpdate:
        append, last = flags.get("append", True), flags.get("lastChunk", True)
        assert append is True, "what is false is not said"
        assert last is True, "what is false is not said"
        return ArtifactUpdate(task, made, "append" in flags, "lastChunk" in flags)

    def answer(self, document: Any) -> View:
        """What a send answers, if it is a task."""
        return self.task(document)

    def send(
        self, pieces: Iterable[Piece], task: str, context: str, *, waits: bool, history: int | None
    ) -> dict[str, Any]:
        """Params of a send, streaming or not (dialects §3.3, §4.8)."""
        ids = {"taskId": task, "contextId": context}
        message = {
            "messageId": f"m{next(_numbers)}",
            "role": self.roles["user"],
            self.content: [self.parts.written(piece) for piece in pieces],
            **({"kind": "message"} if self.kinds else {}),
            **{key: value for key, value in ids.items() if value},
        }
        configuration = self.waiting(waits=waits)
        if history is not None:
            configuration["historyLength"] = history
        return {"message": message, "configuration": configuration}

    def waiting(self, *, waits: bool) -> dict[str, Any]:
        """What a configuration says about waiting."""
        return {"blocking": waits}


class Oldest(Grammar):
    """0.0 and 0.1: the client names the task, artifacts have an index, chunk flags are in the artifact."""

    states = {word: word for word in WORDS if word not in DEGRADED}
    degraded = DEGRADED
    parts = Parts(tag="type")
    kinds = False
    names_tasks, may_leave, shows_history, begins_with_task = True, False, False, False
    #: Members of objects that seed-0 has not.
    metadata = " metadata"

    def task(self, document: Any) -> View:
        """A Task: `sessionId` is always there, since the host may have named it."""
        told = self.object(document, "", "id sessionId status", "artifacts history" + self.metadata)
        indexes = [artifact["index"] for artifact in told.get("artifacts", ())]
        assert indexes == list(range(len(indexes))), document
        assert all(not one.keys() & {"append", "lastChunk"} for one in told.get("artifacts", ()))
        return self._view(told, told["sessionId"])

    def status(self, document: Any, task: str, context: str) -> Status:
        """A TaskStatus; a state there is no word for is told in the message's metadata (dialects §9.1, P1, P2)."""
        told = self.object(document, "", "state timestamp", "message")
        assert MOMENT.fullmatch(told["timestamp"]), document
        shown = self._word(told["state"])
        if "message" not in told:
            return Status(shown, told["timestamp"], (), shown)
        metadata = told["message"].get("metadata", {})
        assert metadata.keys() <= {"a2aState"}, document
        word = metadata.get("a2aState", shown)
        assert word == shown or self.degraded[word] == shown, document
        assert word != shown or not metadata, document
        said = self._said(self.object(told["message"], "", "role parts", "metadata"))
        assert said.role == "agent", document
        return Status(word, told["timestamp"], said.pieces, shown)

    def message(self, document: Any, task: str, context: str) -> Said:
        """A Message: it has no ids."""
        return self._said(self.object(document, "", "role parts"))

    def artifact(self, document: Any) -> Made:
        """An Artifact: its index is its place, its id is in the metadata (dialects §9.1, P6)."""
        may = "name description append lastChunk"
        told = self.object(document, "", "index parts metadata", may)
        assert type(told["index"]) is int, document
        assert told["metadata"].keys() == {"artifactId"}, document
        return replace(self._made(told, told["metadata"]["artifactId"]), index=told["index"])

    def item(self, document: Any) -> Item:
        """An item of a stream: events only."""
        return (
            self.status_event(document) if "status" in document else self.artifact_event(document)
        )

    def status_event(self, document: Any) -> StatusUpdate:
        """A TaskStatusUpdateEvent."""
        told = self.object(document, "", "id status final", self.metadata)
        return StatusUpdate(told["id"], self.status(told["status"], "", ""), told["final"])

    def artifact_event(self, document: Any) -> ArtifactUpdate:
        """A TaskArtifactUpdateEvent: the flags are the artifact's (dialects §9.1, P7)."""
        told = self.object(document, "", "id artifact", self.metadata)
        return self._update(told["id"], self.artifact(told["artifact"]), told["artifact"])

    def send(
        self, pieces: Iterable[Piece], task: str, context: str, *, waits: bool, history: int | None
    ) -> dict[str, Any]:
        """Params of a send: the client names the task; it waits always."""
        message = {"role": "user", "parts": [self.parts.written(piece) for piece in pieces]}
        params: dict[str, Any] = {"id": task or f"mine-{uuid.uuid4()}", "message": message}
        if context:
            params["sessionId"] = context
        if history is not None:
            params["historyLength"] = history
        return params


class Seed(Oldest):
    """Seed-0: a task is created, not submitted; nothing but messages and artifacts has metadata."""

    states = {**Oldest.states, "submitted": "created"}
    metadata = ""


class Wrapped(Grammar):
    """A2A 1.0: the member's name says what it is."""

    states: Mapping[str, str] = {
        word: "TASK_STATE_" + word.upper().replace("-", "_") for word in WORDS
    }
    roles: Mapping[str, str] = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
    parts: Parts = FlatParts()
    kinds, finals, follows_ended = False, False, False

    def answer(self, document: Any) -> View:
        """What a send answers, if it is a task."""
        assert document.keys() == {"task"}, document
        return self.task(document["task"])

    def item(self, document: Any) -> Item:
        """An item of a stream: exactly one member (R-145)."""
        ((name, inside),) = document.items()
        if name == "task":
            return self.task(inside)
        if name == "statusUpdate":
            return self.status_event(inside)
        assert name == "artifactUpdate", document
        return self.artifact_event(inside)

    def waiting(self, *, waits: bool) -> dict[str, Any]:
        """Waiting is the default; the opposite is asked for."""
        return {} if waits else {"returnImmediately": True}


class Draft(Wrapped):
    """The draft of 1.0: lower-case words, file objects, `final`, and an l more."""

    states = {**Grammar.states, "canceled": "cancelled"}
    roles = Grammar.roles
    parts = Parts(
        by_value="fileWithBytes", by_reference="fileWithUri", media="mediaType", boxed=True
    )
    finals = True

    def waiting(self, *, waits: bool) -> dict[str, Any]:
        """Not to wait is the default."""
        return {"blocking": True} if waits else {}


class Proto(Wrapped):
    """0.3 over HTTP+JSON: the ProtoJSON of its proto (dialects §3.4)."""

    states = {**Wrapped.states, "canceled": "TASK_STATE_CANCELLED"}
    parts = Parts(by_value="fileWithBytes", by_reference="fileWithUri", boxed=True, doubled=True)
    content = "content"
    message_may = "contextId taskId extensions metadata"
    finals, follows_ended = True, True

    def waiting(self, *, waits: bool) -> dict[str, Any]:
        """As over JSON-RPC."""
        return {"blocking": waits}


class LaconicProto(Proto):
    """The same from a peer that leaves out what is false."""

    def waiting(self, *, waits: bool) -> dict[str, Any]:
        """A configuration without `blocking` does not wait."""
        return {"blocking": True} if waits else {}


# --- bindings -------------------------------------------------------------------------------------

Asked = tuple[str, str, bytes, dict[str, str]]
OLDEST = {
    "send": "tasks/send",
    "stream": "tasks/sendSubscribe",
    "get": "tasks/get",
    "cancel": "tasks/cancel",
    "subscribe": "tasks/resubscribe",
}
SEED = {name: method for name, method in OLDEST.items() if name != "subscribe"}
SLASHED = {**OLDEST, "send": "message/send", "stream": "message/stream"}
PASCAL = {
    "send": "SendMessage",
    "stream": "SendStreamingMessage",
    "get": "GetTask",
    "cancel": "CancelTask",
    "subscribe": "SubscribeToTask",
}


class JsonRpc:
    """JSON-RPC (dialects §3.2)."""

    def __init__(self, methods: Mapping[str, str]) -> None:
        self.methods = methods

    def asked(self, operation: str, params: Mapping[str, Any]) -> Asked:
        """A POST to the mount."""
        document = {
            "jsonrpc": "2.0",
            "id": "q1",
            "method": self.methods[operation],
            "params": params,
        }
        return "POST", "", json.dumps(document).encode(), {"content-type": "application/json"}

    def result(self, response: Response) -> Any:
        """The result in an answer. Raises Refused."""
        assert response.header("content-type") == "application/json", response
        return self._opened(response.json, response)

    def item(self, event: Event) -> Any:
        """What an event says: a whole response (R-161)."""
        return self._opened(event.data, Response(200, [], json.dumps(event.data).encode()))

    @staticmethod
    def _opened(document: Any, response: Response) -> Any:
        assert document["jsonrpc"] == "2.0", document
        if "error" in document:
            raise Refused(response)
        assert document.keys() == {"jsonrpc", "id", "result"}, document
        assert (response.status, document["id"]) == (200, "q1"), document
        return document["result"]


class HttpJson:
    """HTTP+JSON (dialects §3.4, §3.5)."""

    def __init__(self, prefix: str = "", *, subscribes_by: str = "POST") -> None:
        self.prefix, self.subscribes_by = prefix, subscribes_by

    def asked(self, operation: str, params: Mapping[str, Any]) -> Asked:
        """The route's verb, path, query and body."""
        if operation in {"send", "stream"}:
            body = json.dumps(params).encode()
            headers = {"content-type": "application/json"}
            return "POST", f"{self.prefix}/message:{operation}", body, headers
        path = f"{self.prefix}/tasks/{quote(params['id'], safe='')}"
        if operation == "get":
            query = urlencode({key: value for key, value in params.items() if key != "id"})
            return "GET", f"{path}?{query}" if query else path, b"", {}
        verb = self.subscribes_by if operation == "subscribe" else "POST"
        return verb, f"{path}:{operation}", b"", {}

    def result(self, response: Response) -> Any:
        """The body of an answer. Raises Refused."""
        if response.status != 200:
            raise Refused(response)
        assert response.header("content-type") == "application/json", response
        return response.json

    def item(self, event: Event) -> Any:
        """What an event says: the bare item."""
        return event.data


# --- wires ----------------------------------------------------------------------------------------


class Watch:
    """An open stream, and all it has said."""

    def __init__(self, wire: Wire, stream: Stream) -> None:
        self._wire, self._stream = wire, stream
        self.items: list[Item] = []
        self.ended = False

    async def next(self) -> Item | None:
        """The next item; None at the end."""
        event = await self._stream.next()
        if event is None:
            self._check_end()
            return None
        assert event.name == "message", event
        item = self._wire.grammar.item(self._wire.binding.item(event))
        if self._wire.grammar.begins_with_task:
            assert isinstance(item, View) == (not self.items), f"the Task is the first item: {item}"
        self.items.append(item)
        assert (item.id if isinstance(item, View) else item.task) == self.task
        return item

    def _check_end(self) -> None:
        """The last status event says so, no other does (dialects §5.3)."""
        self.ended = True
        finals = [item.final for item in self.items if isinstance(item, StatusUpdate)]
        assert isinstance(self.items[-1], StatusUpdate), "a stream ends with a status event"
        if self._wire.grammar.finals:
            assert finals == [False] * (len(finals) - 1) + [True], self.items
        else:
            assert set(finals) == {None}

    async def until(self, word: str) -> None:
        """Read up to the first status of that state."""
        while self.word != word:
            assert await self.next() is not None, f"no status {word} in {self.items}"

    async def rest(self) -> list[Item]:
        """All that comes from here to the end."""
        begun = len(self.items)
        while await self.next() is not None:
            pass
        return self.items[begun:]

    @property
    def task(self) -> str:
        """The task the stream is about."""
        first = self.items[0]
        return first.id if isinstance(first, View) else first.task

    @property
    def word(self) -> str:
        """The state last told."""
        told = [item.status.word for item in self.items if not isinstance(item, ArtifactUpdate)]
        return told[-1] if told else ""

    @property
    def places(self) -> dict[str, int | None]:
        """The indexes of the artifacts that events brought; one does not change."""
        updates = [item.made for item in self.items if isinstance(item, ArtifactUpdate)]
        found = {made.id: made.index for made in updates}
        assert all(found[made.id] == made.index for made in updates), updates
        return found

    @property
    def folded(self) -> View:
        """The task, as far as the stream has told of it."""
        return folded(self.items)


@dataclass(frozen=True)
class Wire:
    """A client of one dialect over one binding, at its pinned mount."""

    name: str
    mount: str
    grammar: Grammar
    binding: JsonRpc | HttpJson
    #: The A2A-Version its clients send.
    version: str = ""
    client: Client | None = None

    def of(self, client: Client, slug: str) -> Wire:
        """The same client, of an agent."""
        return replace(self, client=Client(client.app, f"/agents/{slug}/{self.mount}"))

    @property
    def subscribes(self) -> bool:
        """Can it follow a task that it does not send to? Seed-0 cannot."""
        return not isinstance(self.binding, JsonRpc) or "subscribe" in self.binding.methods

    def shown(self, word: str) -> str:
        """What this wire shows for a state."""
        return self.grammar.degraded.get(word, word)

    def unasked(self, view: View) -> View:
        """What a stream of this wire can tell of a task; the oldest say neither context nor history."""
        if self.grammar.begins_with_task:
            return view
        return replace(view, context="", history=())

    def _asked(self, operation: str, params: Mapping[str, Any]) -> Asked:
        method, path, body, headers = self.binding.asked(operation, params)
        return method, path, body, {**headers, **self._headers}

    @property
    def _headers(self) -> dict[str, str]:
        return {"a2a-version": self.version} if self.version else {}

    async def call(self, operation: str, params: Mapping[str, Any]) -> Any:
        """Ask, and return the result. Raises Refused."""
        assert self.client is not None
        return self.binding.result(await self.client.ask(*self._asked(operation, params)))

    async def send(
        self,
        *pieces: Piece | str,
        task: str = "",
        context: str = "",
        waits: bool = True,
        history: int | None = None,
    ) -> View:
        """Send a message, to an existing task or for a new one."""
        assert waits or self.grammar.may_leave
        params = self._params(pieces, task, context, waits=waits, history=history)
        return self.grammar.answer(await self.call("send", params))

    def _params(
        self,
        pieces: Iterable[Piece | str],
        task: str,
        context: str,
        *,
        waits: bool = True,
        history: int | None = None,
    ) -> dict[str, Any]:
        given = [Piece("text", piece) if isinstance(piece, str) else piece for piece in pieces]
        return self.grammar.send(given, task, context, waits=waits, history=history)

    async def get(self, task: str, history: int | None = None) -> View:
        """Read a task."""
        wanted = {} if history is None else {"historyLength": history}
        return self.grammar.task(await self.call("get", {"id": task, **wanted}))

    async def cancel(self, task: str) -> View:
        """Cancel a task."""
        return self.grammar.task(await self.call("cancel", {"id": task}))

    def stream(
        self, *pieces: Piece | str, task: str = "", context: str = ""
    ) -> contextlib.AbstractAsyncContextManager[Watch]:
        """Send a message and follow what becomes of it."""
        return self._watch("stream", self._params(pieces, task, context))

    def subscribe(self, task: str) -> contextlib.AbstractAsyncContextManager[Watch]:
        """Follow a task."""
        return self._watch("subscribe", {"id": task})

    @contextlib.asynccontextmanager
    async def _watch(self, operation: str, params: Mapping[str, Any]) -> AsyncIterator[Watch]:
        async with self.opened(operation, params) as stream:
            yield Watch(self, stream)

    @contextlib.asynccontextmanager
    async def opened(
        self, operation: str, params: Mapping[str, Any], *, seen: str = ""
    ) -> AsyncIterator[Stream]:
        """A stream as it comes, after the event `seen` if there is one. Raises Refused."""
        assert self.client is not None
        method, path, body, headers = self._asked(operation, params)
        if seen:
            headers["last-event-id"] = seen
        async with self.client.stream(method, path, body, headers) as stream:
            if (refusal := await stream.refusal()) is not None:
                raise Refused(refusal)
            assert (stream.status, stream.header("content-type")) == (200, "text/event-stream")
            yield stream


WIRES = [
    Wire("s0", "a2a/seed-0", Seed(), JsonRpc(SEED)),
    Wire("v00", "a2a/0.0", Oldest(), JsonRpc(OLDEST)),
    Wire("v01", "a2a/0.1", Oldest(), JsonRpc(OLDEST)),
    Wire("v02", "a2a/0.2", Grammar(), JsonRpc(SLASHED)),
    Wire("v02-http", "a2a/0.2", LaconicProto(), HttpJson("/v1")),
    Wire("v03", "a2a/0.3", Grammar(), JsonRpc(SLASHED)),
    Wire("v03-http", "a2a/0.3", Proto(), HttpJson("/v1", subscribes_by="GET")),
    Wire("dr", "a2a/1.0-draft", Draft(), JsonRpc(PASCAL), "1.0"),
    Wire("dr-http", "a2a/1.0-draft", Draft(), HttpJson("/v1"), "1.0"),
    Wire("v10", "a2a/1.0", Wrapped(), JsonRpc(PASCAL), "1.0"),
    Wire("v10-http", "a2a/1.0", Wrapped(), HttpJson(), "1.0"),
]
BY_NAME = {wire.name: wire for wire in WIRES}
