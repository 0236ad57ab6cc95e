"""What can be said, as strategies; and how each dialect says it, written from the reference and from nothing else.

The second half is the model the algebra is checked against: `spelled_*` for the wire (with all that a dialect has no
words for degraded), `heard` for what is left of a message that went through it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Any

from hypothesis import strategies as st

from a2a_tasks.protocol.dialects import DIALECTS, CompatOptions, Dialect
from a2a_tasks.protocol.dialects.dr import Draft
from a2a_tasks.protocol.dialects.v03_rest import V03Rest
from a2a_tasks.protocol.jsontext import read, write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, TRANSITIONS, EventKind, LogEvent
from a2a_tasks.protocol.requests import (
    CancelTaskRequest,
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetPushConfigRequest,
    GetTaskRequest,
    ListPushConfigsRequest,
    ListTasksRequest,
    Request,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.values import (
    UNSET,
    Artifact,
    ArtifactUpdate,
    Message,
    Part,
    PushConfig,
    Raw,
    Role,
    Task,
    TaskState,
    TaskStatus,
    replace,
)

S = TaskState
Tree = dict[str, Any]


# -- the forms of the wire -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """One form of the wire, by what the reference says of it (§0.1, §4)."""

    name: str
    dialect: Dialect
    #: Discriminator of parts; none where the member tells.
    tag: str = ""
    #: Sessions, positions, tasks named by the client.
    oldest: bool = False
    #: Tasks, messages and events are told by their `kind`.
    kinds: bool = False
    #: Enums by their names in the proto.
    enums: bool = False
    #: camelCase and snake_case are read alike.
    protojson: bool = False
    #: Results of sends and items of streams are wrapped in their kind.
    wrapped: bool = False
    #: Base64 of base64.
    doubled: bool = False
    content: str = "parts"
    #: Names of: bytes, reference, media type of a file.
    file: tuple[str, str, str] = ("bytes", "uri", "mimeType")

    @property
    def code(self) -> str:
        return self.dialect.code

    @property
    def newest(self) -> bool:
        """Is it 1.0, the spelling of the store?"""
        return self.code == "v10"

    @property
    def final(self) -> bool:
        return not self.newest

    def __str__(self) -> str:
        return self.name


def _old(code: str) -> Form:
    return Form(code, DIALECTS[code], tag="type", oldest=True)


def _kinds(code: str) -> Form:
    return Form(code, DIALECTS[code], tag="kind", kinds=True)


def _proto(doubled: bool) -> Form:
    return Form(
        "v03-rest" if doubled else "v03-rest-once",
        V03Rest(CompatOptions(double_base64_v03=doubled)),
        enums=True,
        protojson=True,
        wrapped=True,
        doubled=doubled,
        content="content",
        file=("fileWithBytes", "fileWithUri", "mimeType"),
    )


def _draft(bare: bool) -> Form:
    return Form(
        "dr-bare" if bare else "dr",
        Draft(CompatOptions(draft_bare_results=bare)),
        protojson=True,
        wrapped=not bare,
        file=("fileWithBytes", "fileWithUri", "mediaType"),
    )


FORMS = (
    *(_old(code) for code in ("s0", "v00", "v01")),
    *(_kinds(code) for code in ("v02", "v03")),
    *(_proto(doubled) for doubled in (True, False)),
    *(_draft(bare) for bare in (False, True)),
    Form("v10", DIALECTS["v10"], enums=True, protojson=True, wrapped=True),
)

# -- strategies ----------------------------------------------------------------------------------------------------------

_characters = st.characters(codec="utf-8")
texts = st.text(_characters, max_size=8)
#: Ids: not empty, no NUL.
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
#: Names that mean something somewhere, so that the host's and the people's meet.
_names = texts | st.sampled_from(
    [
        "mediaType",
        "filename",
        "artifactId",
        "a2aState",
        "value",
        "data",
        "kind",
        "type",
        "snake_case",
    ]
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_names, inner, max_size=2),
    max_leaves=4,
)
structs = st.none() | st.dictionaries(_names, json_values, max_size=2)
counts = st.none() | st.integers(0, 2**31 - 1)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


_contents = st.one_of(
    texts.map(lambda text: {"text": text}),
    words.map(lambda url: {"url": url}),
    st.binary(max_size=8).map(lambda content: {"raw": encoded(content)}),
    json_values.map(lambda value: {"data": value}),
)
parts = st.builds(
    lambda content, **about: Part(**content, **about),
    _contents,
    metadata=structs,
    filename=st.none() | words,
    media_type=st.none() | words,
)
part_lists = st.lists(parts, min_size=1, max_size=3).map(tuple)
messages = st.builds(
    Message,
    message_id=words,
    context_id=st.none() | words,
    task_id=st.none() | words,
    role=st.sampled_from(Role),
    parts=part_lists,
    metadata=structs,
    extensions=st.lists(texts, max_size=2).map(tuple),
    reference_task_ids=st.lists(texts, max_size=2).map(tuple),
)
artifact_ids = st.sampled_from(["a", "b", "c"]) | words
artifacts = st.builds(
    Artifact,
    artifact_id=artifact_ids,
    name=st.none() | words,
    description=st.none() | words,
    parts=part_lists,
    metadata=structs,
    extensions=st.lists(texts, max_size=2).map(tuple),
)
updates = st.builds(
    ArtifactUpdate,
    artifact=artifacts,
    append=st.booleans(),
    last_chunk=st.booleans(),
    metadata=structs,
)


def _raw(value: Any) -> Raw:
    return Raw(write(value))


def moment(number: int) -> str:
    return f"2026-01-01T00:00:{number:02d}.000Z"


statuses = st.builds(
    TaskStatus,
    state=st.sampled_from(S),
    message=st.none() | messages.map(_raw),
    timestamp=st.integers(0, 59).map(moment),
)
_artifact_lists = st.lists(artifacts, max_size=3, unique_by=lambda a: a.artifact_id).map(
    lambda found: [_raw(artifact) for artifact in found]
)
tasks = st.builds(
    Task,
    id=words,
    context_id=words,
    status=statuses,
    artifacts=_artifact_lists.map(lambda found: found or UNSET),
    history=st.just(UNSET) | st.lists(messages.map(_raw), max_size=2),
    metadata=structs.map(lambda found: None if found is None else _raw(found)),
)
#: Tasks of a page: that artifacts were asked for and there are none is said (§4.10).
listed = st.builds(lambda task, found: replace(task, artifacts=found), tasks, _artifact_lists)
push_configs = st.builds(
    PushConfig,
    url=words,
    id=words,
    task_id=words,
    token=st.just("") | words,
    schemes=st.lists(words, max_size=2).map(tuple),
    credentials=st.just("") | words,
)


@dataclass(frozen=True)
class Log:
    """A task where it stands, and what was recorded of it after that."""

    start: Task
    events: tuple[LogEvent, ...]

    @property
    def shown(self) -> list[LogEvent]:
        return [event for event in self.events if event.kind is not EventKind.INPUT]


def _recorded(number: int, wish: TaskStatus | ArtifactUpdate | Message) -> LogEvent:
    match wish:
        case TaskStatus():
            body = write({"status": replace(wish, timestamp=moment(number))})
            return LogEvent(
                number=number, kind=EventKind.STATUS, body=body.decode(), state=wish.state
            )
        case ArtifactUpdate():
            return LogEvent(number=number, kind=EventKind.ARTIFACT, body=write(wish).decode())
    return LogEvent(number=number, kind=EventKind.INPUT, body=write(wish).decode())


def log_of(start: Task, wishes: list[TaskStatus | ArtifactUpdate | Message]) -> Log:
    """The wishes that the life of a task allows, in order, as its log would have them."""
    state, events = start.status.state, list[LogEvent]()
    for wish in wishes:
        if state in TERMINAL:
            break
        if isinstance(wish, TaskStatus):
            if wish.state not in TRANSITIONS[state]:
                continue
            state = wish.state
        events.append(_recorded(len(events) + 1, wish))
    return Log(start, tuple(events))


_wishes = st.lists(st.one_of(updates, statuses, messages), max_size=8)
_active = tasks.map(
    lambda task: replace(
        task, history=UNSET, status=replace(task.status, state=S.SUBMITTED, message=None)
    )
)
#: Any legal life, seen from any moment of it.
logs = st.builds(log_of, _active, _wishes)


@dataclass(frozen=True)
class Asking:
    """All that a send can say, in whatever dialect."""

    message: Message
    modes: tuple[str, ...] = ()
    length: int | None = None
    waits: bool | None = None
    push: PushConfig | None = None
    metadata: Mapping[str, Any] | None = None
    #: What the client calls task and tenant, where it may.
    named: str = "t"
    tenant: str = ""


askings = st.builds(
    Asking,
    message=messages,
    modes=st.lists(texts | st.sampled_from(["text", "data", "text/plain"]), max_size=2).map(tuple),
    length=counts,
    waits=st.none() | st.booleans(),
    push=st.none() | push_configs,
    metadata=structs,
    named=words,
    tenant=st.just("") | words,
)

# -- objects on the wire -------------------------------------------------------------------------------------------------

_WORDS = {
    S.SUBMITTED: "submitted",
    S.WORKING: "working",
    S.INPUT_REQUIRED: "input-required",
    S.AUTH_REQUIRED: "auth-required",
    S.COMPLETED: "completed",
    S.FAILED: "failed",
    S.CANCELED: "canceled",
    S.REJECTED: "rejected",
}
_ENUMS = {state: "TASK_STATE_" + word.upper().replace("-", "_") for state, word in _WORDS.items()}
_OLDEST = _WORDS | {S.REJECTED: "failed", S.AUTH_REQUIRED: "input-required"}
#: How each dialect calls the states (§4.2, P1 to P4).
STATES = {
    "s0": _OLDEST | {S.SUBMITTED: "created"},
    "v00": _OLDEST,
    "v01": _OLDEST,
    "v02": _WORDS,
    "v03": _WORDS,
    "v03-rest": _ENUMS | {S.CANCELED: "TASK_STATE_CANCELLED"},
    "v03-rest-once": _ENUMS | {S.CANCELED: "TASK_STATE_CANCELLED"},
    "dr": _WORDS | {S.CANCELED: "cancelled"},
    "dr-bare": _WORDS | {S.CANCELED: "cancelled"},
    "v10": _ENUMS,
}
#: States the oldest have no word for: told in the message too (P1, P2).
UNTOLD = {S.REJECTED: "rejected", S.AUTH_REQUIRED: "auth-required"}


class MadeUp:
    """Equal to any message an old dialect may get to explain a state, when the agent said nothing (P1, P2)."""

    def __init__(self, state: str) -> None:
        self.state = state

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, dict)
            and other.keys() == {"role", "parts", "metadata"}
            and other["role"] == "agent"
            and bool(other["parts"])
            and other["metadata"] == {"a2aState": self.state}
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<any message that says {self.state}>"


def plain(value: Any) -> Any:
    return read(write(value))


def lean(tree: Any) -> Any:
    """The tree without metadata that says nothing: there or not is the same."""
    if isinstance(tree, dict):
        return {
            key: lean(value)
            for key, value in tree.items()
            if not (key == "metadata" and value == {})
        }
    return [lean(item) for item in tree] if isinstance(tree, list) else tree


def _without_nothing(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if value not in (None, {}, [], "")}


def spelled_role(form: Form, role: str) -> str:
    """Who speaks (§4.3)."""
    return role if form.enums else role.removeprefix("ROLE_").lower()


def _spelled_file(form: Form, part: Tree) -> Tree:
    by_value, by_reference, media_type = form.file
    if "raw" in part:
        raw = encoded(part["raw"].encode()) if form.doubled else part["raw"]
        content = {by_value: raw}  # P11
    else:
        content = {by_reference: part["url"]}  # P12
    names = {"name": part.get("filename"), media_type: part.get("mediaType")}  # P13
    return {"file": content | _without_nothing(names)}


def spelled_part(form: Form, part: Tree) -> Tree:
    """A part (§4.4, P11 to P16)."""
    if form.newest:
        return part
    metadata = dict(part.get("metadata", {}))
    if "text" in part or "data" in part:
        metadata |= {key: part[key] for key in ("mediaType", "filename") if key in part}  # P14
    if "text" in part:
        kind, said = "text", {"text": part["text"]}
    elif "data" in part:
        kind, value = "data", part["data"]
        if not isinstance(value, dict):  # P15
            value = {"value": value}
            metadata["data_part_compat"] = True
        said = {"data": value if form.tag else {"data": value}}  # P16
    else:
        kind, said = "file", _spelled_file(form, part)
    tag = {form.tag: kind} if form.tag else {}
    return tag | said | ({"metadata": metadata} if metadata else {})


def spelled_message(form: Form, message: Tree) -> Tree:
    """A message (§4.3, P10)."""
    if form.newest:
        return message
    kept = dict(message)
    kept.pop("parts")
    if form.oldest:
        kept = {key: kept[key] for key in ("metadata",) if key in kept}
    elif form.content == "content":
        kept.pop("referenceTaskIds", None)
    kind = {"kind": "message"} if form.kinds else {}
    said = [spelled_part(form, part) for part in message["parts"]]
    return {**kind, **kept, "role": spelled_role(form, message["role"]), form.content: said}


def spelled_artifact(form: Form, artifact: Tree, position: int) -> Tree:
    """An artifact (§4.5, P6, P10)."""
    said = artifact | {"parts": [spelled_part(form, part) for part in artifact["parts"]]}
    if not form.oldest:
        return said
    said.pop("extensions", None)
    metadata = {**said.pop("metadata", {}), "artifactId": said.pop("artifactId")}
    return {**said, "index": position, "metadata": metadata}


def spelled_status(form: Form, status: Tree) -> Tree:
    """A status (§4.1, §4.2, P1 to P4, P19, P26)."""
    state, message = S(status["state"]), status.get("message")
    said: Tree = {"state": STATES[form.name][state], "timestamp": status["timestamp"]}
    find_undelivered = UNTOLD.get(state) if form.oldest else None
    if message is not None:
        mark = {"a2aState": find_undelivered} if find_undelivered else {}
        message = message | {"metadata": {**message.get("metadata", {}), **mark}}
        said["message"] = spelled_message(form, message)
    elif find_undelivered:
        said["message"] = MadeUp(find_undelivered)
    return said


def spelled_task(form: Form, task: Tree) -> Tree:
    """A task (§4.1, P5, P25)."""
    if form.newest:
        return task
    found = task.get("artifacts", [])
    said = {
        "id": task["id"],
        "sessionId" if form.oldest else "contextId": task["contextId"],
        "status": spelled_status(form, task["status"]),
        "artifacts": [spelled_artifact(form, each, n) for n, each in enumerate(found)],
        "history": [spelled_message(form, message) for message in task.get("history", [])],
        "metadata": None if form.code == "s0" else task.get("metadata"),
        "kind": "task" if form.kinds else None,
    }
    asked = {} if form.oldest or "artifacts" not in task else {"artifacts": said["artifacts"]}
    return _without_nothing(said) | asked


def spelled_event(form: Form, task: Task, event: Tree, *, position: int, final: bool) -> Tree:
    """A stream item's object (§4.6, P7, P8)."""
    name = "status" if "status" in event else "artifact"
    ids: Tree = (
        {"id": task.id} if form.oldest else {"taskId": task.id, "contextId": task.context_id}
    )
    kind = {"kind": f"{name}-update"} if form.kinds else {}
    more = {key: event[key] for key in ("metadata",) if key in event}
    if name == "status":
        said = event["status"] if form.newest else spelled_status(form, event["status"])
        return kind | ids | {"status": said} | ({"final": final} if form.final else {}) | more
    flags = {key: event[key] for key in ("append", "lastChunk") if key in event}
    artifact = spelled_artifact(form, event["artifact"], position)
    if form.oldest:
        return ids | {"artifact": artifact | flags} | more
    return kind | ids | {"artifact": artifact} | flags | more


def spelled_push(form: Form, config: PushConfig) -> Tree:
    """A push config as it is told: never its secrets (§4.7, P17)."""
    if form.code == "s0":
        return {"url": config.url, "headers": dict.fromkeys(config.headers, "***")}
    schemes: Tree = {"authentication": {"schemes": list(config.schemes)}} if config.schemes else {}
    if form.oldest:
        return {"id": config.task_id, "pushNotificationConfig": {"url": config.url, **schemes}}
    if form.newest:
        schemes = {"authentication": {"scheme": config.schemes[0]}} if schemes else {}
        return {"id": config.id, "taskId": config.task_id, "url": config.url, **schemes}
    inner = {"id": config.id, "url": config.url, **schemes}
    if form.kinds:
        return {"taskId": config.task_id, "pushNotificationConfig": inner}
    name = f"tasks/{in_name(config.task_id)}/pushNotificationConfigs/{in_name(config.id)}"
    return {"name": name, "pushNotificationConfig": inner}


def in_name(id_: str) -> str:
    return id_.replace("%", "%25").replace("/", "%2F")


def spelled_result(form: Form, kind: str, tree: Tree) -> Tree:
    """The result of a send, or an item of a stream (§0.1)."""
    return {kind: tree} if form.wrapped else tree


# -- requests on the wire ------------------------------------------------------------------------------------------------


def sayable(form: Form, message: Message) -> Message:
    """The message without what the dialect has no words for at all."""
    if form.newest:
        return message
    bare = tuple(
        replace(part, filename=None, media_type=None)
        if part.raw is UNSET and part.url is UNSET
        else part
        for part in message.parts
    )
    message = replace(message, parts=bare)
    if form.oldest:
        message = replace(message, task_id=None, extensions=(), reference_task_ids=())
    return replace(message, reference_task_ids=()) if form.content == "content" else message


def heard(form: Form, message: Message) -> Tree:
    """What is left of a message that was written in the dialect and read again, with its id."""
    said = sayable(form, message)
    moved = []
    for kept, part in zip(said.parts, message.parts, strict=True):
        lost = {"mediaType": part.media_type, "filename": part.filename} if kept != part else {}
        metadata = {**(part.metadata or {}), **_without_nothing(lost)}
        moved.append(replace(kept, metadata=metadata))
    tree = plain(replace(said, parts=tuple(moved)))
    assert isinstance(tree, dict)
    return tree


def _asked_push(form: Form, config: PushConfig) -> Tree:
    """A config as a client sends it (§4.7)."""
    schemes: Tree = {"schemes": list(config.schemes)}
    if form.newest:
        schemes = {"scheme": config.schemes[0] if config.schemes else ""}
    credentials = config.credentials if config.schemes else ""
    authentication = _without_nothing({**schemes, "credentials": credentials})
    said = {"url": config.url, "token": config.token, "authentication": authentication}
    if not form.oldest:
        said["id"] = config.id
    return _without_nothing(said)


def _read_push(form: Form, config: PushConfig, task_id: str, path: str) -> PushConfig:
    """The same as it must be understood, with where it stood."""
    return replace(
        config,
        id="" if form.oldest else config.id,
        task_id=task_id,
        schemes=config.schemes[:1] if form.newest else config.schemes,
        credentials=config.credentials if config.schemes else "",
        dialect=form.code,
        path=path,
    )


def _present(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if value is not None}


def spelled_send(form: Form, asking: Asking) -> Tree:
    """The parameters of a send (§3.3, §4.8)."""
    message = spelled_message(form, plain(asking.message))
    push = None if asking.push is None else _asked_push(form, asking.push)
    modes = list(asking.modes) or None
    if form.oldest:
        return _present(
            {
                "id": asking.named,
                "sessionId": asking.message.context_id,
                "message": message,
                "historyLength": asking.length,
                "pushNotification": push,
                "acceptedOutputModes": modes,
                "metadata": asking.metadata,
            }
        )
    waits = asking.waits
    configuration = {
        "acceptedOutputModes": modes,
        "historyLength": asking.length,
        _push_key(form): push,
        "returnImmediately" if form.newest else "blocking": waits is False
        if form.newest and waits is not None
        else waits,
    }
    return _present(
        {
            "message": message,
            "configuration": _present(configuration) or None,
            "metadata": asking.metadata,
            "tenant": asking.tenant or None if form.newest else None,
        }
    )


def _push_key(form: Form) -> str:
    if form.newest:
        return "taskPushNotificationConfig"
    return "pushNotification" if form.content == "content" else "pushNotificationConfig"


def understood_send(form: Form, asking: Asking) -> SendMessageRequest:
    """The request that must come of it (§4.8, §4.9, §5.2, decision 9)."""
    named = asking.named if form.oldest else ""
    path = "pushNotification" if form.oldest else f"configuration.{_push_key(form)}"
    push = None if asking.push is None else _read_push(form, asking.push, named, path)
    request = SendMessageRequest(
        message=sayable(form, asking.message),
        accepted_output_modes=asking.modes,
        history_length=asking.length,
        push_config=push,
        metadata=asking.metadata,
    )
    if form.oldest:
        length = 0 if asking.length is None else asking.length
        modes = {"text": "text/plain", "data": "application/json"}  # words, before media types
        return changed(
            request,
            accepted_output_modes=tuple(modes.get(mode, mode) for mode in asking.modes),
            history_length=length,
            named=named,
            reopens=True,
            wants_task=True,
            pauses=INTERRUPTED,
        )
    if form.code == "dr":
        return changed(request, return_immediately=asking.waits is not True)
    tenant = asking.tenant if form.newest else ""
    laconic = form.content == "content" and "configuration" in spelled_send(form, asking)
    immediately = asking.waits is not True if laconic else asking.waits is False
    return changed(request, return_immediately=immediately, tenant=tenant)


@dataclass(frozen=True)
class Case:
    """An operation, its parameters in a dialect, and the request that must come of them."""

    operation: str
    params: Tree
    request: Request
    #: Members that may be null.
    optional: tuple[str, ...] = field(default=())


def simple_cases(form: Form, *, task: str, config: PushConfig, length: int | None) -> list[Case]:
    """Requests that name a task, or one of its webhooks (§3.3)."""
    default = 0 if form.oldest and length is None else length
    cases = [
        Case(
            "GetTask",
            _present({"id": task, "historyLength": length}),
            GetTaskRequest(id=task, history_length=default),
            ("metadata",),
        ),
        Case(
            "CancelTask",
            {"id": task},
            CancelTaskRequest(id=task, history_length=0 if form.oldest else None),
            ("metadata",),
        ),
    ]
    if form.code != "s0":
        lenient = form.oldest or form.code in {"v02", "v03"}
        request = SubscribeToTaskRequest(id=task, lenient=lenient)
        cases.append(Case("SubscribeToTask", {"id": task}, request))
    return cases + _push_cases(form, task, config)


def _push_cases(form: Form, task: str, config: PushConfig) -> list[Case]:
    create, get = "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"
    if form.code == "s0":
        flat = {"id": task, "url": config.url, "headers": {"x": config.token}}
        made = PushConfig(
            url=config.url, task_id=task, headers={"x": config.token}, dialect=form.code
        )
        return [
            Case(create, flat, CreatePushConfigRequest(config=made), ("sessionId",)),
            Case(
                get, {"id": task}, GetPushConfigRequest(task_id=task, lenient=True), ("sessionId",)
            ),
        ]
    asked = _asked_push(form, config)
    made = _read_push(form, config, task, _path_of_push(form))
    optional = ("metadata",)
    if form.oldest:
        params = {"id": task, "pushNotificationConfig": asked}
        return [
            Case(create, params, CreatePushConfigRequest(config=made), optional),
            Case(get, {"id": task}, GetPushConfigRequest(task_id=task, lenient=True), optional),
        ]
    one, many, params = _push_params(form, task, config.id, asked)
    size = 100 if form.kinds else 50
    return [
        Case(create, params, CreatePushConfigRequest(config=made), optional),
        Case(get, one, GetPushConfigRequest(task_id=task, id=config.id), optional),
        Case(
            "DeleteTaskPushNotificationConfig",
            one,
            DeletePushConfigRequest(task_id=task, id=config.id),
            optional,
        ),
        Case(
            "ListTaskPushNotificationConfigs",
            many,
            ListPushConfigsRequest(task_id=task, page_size=size),
            ("pageToken", "pageSize"),
        ),
    ]


def _path_of_push(form: Form) -> str:
    if form.newest:
        return ""
    return (
        "pushNotificationConfig" if form.kinds or form.oldest else "config.pushNotificationConfig"
    )


def _push_params(form: Form, task: str, config: str, asked: Tree) -> tuple[Tree, Tree, Tree]:
    """What names one config, what names all of a task, and what makes one."""
    if form.kinds:
        one = {"id": task, "pushNotificationConfigId": config}
        return one, {"id": task}, {"taskId": task, "pushNotificationConfig": asked}
    if form.newest:
        return {"taskId": task, "id": config}, {"taskId": task}, {"taskId": task, **asked}
    parent = f"tasks/{in_name(task)}"
    name = f"{parent}/pushNotificationConfigs/{in_name(config)}"
    inner: Tree = {"pushNotificationConfig": asked}
    return (
        {"name": name},
        {"parent": parent},
        {"parent": parent, "configId": config, "config": inner},
    )


#: Dialects that are asked for lists of tasks (decision 9).
LISTING = {"v03", "dr", "v10"}


def list_case(form: Form, asked: ListTasksRequest, milliseconds: int | None) -> Case:
    """ListTasks (§4.10); the time filter apart, for it has two spellings."""
    at = None
    if milliseconds is not None:
        seconds, rest = divmod(milliseconds, 1000)
        at = f"1970-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}.{rest:03d}Z"
    names: dict[TaskState, str] = STATES[form.name]
    status = None if asked.status is None else names[asked.status]
    time = {"statusTimestampAfter": at} if form.newest else {"lastUpdatedAfter": milliseconds}
    params = {
        "contextId": asked.context_id,
        "status": status,
        "pageSize": asked.page_size,
        "pageToken": asked.page_token or None,
        "historyLength": asked.history_length,
        "includeArtifacts": asked.include_artifacts,
        **time,
    }
    request = changed(asked, status_timestamp_after=at)
    return Case("ListTasks", _present(params), request, tuple(params))


listings = st.builds(
    ListTasksRequest,
    context_id=st.none() | words,
    status=st.none() | st.sampled_from(S),
    page_size=st.integers(1, 100),
    page_token=st.just("") | words,
    history_length=st.integers(0, 2**31 - 1),
    include_artifacts=st.booleans(),
)
milliseconds = st.none() | st.integers(0, 3_599_999)
#: Ids without a slash, which can stand in a resource's name.
any_ids = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
named_configs = st.builds(lambda config, name: replace(config, id=name), push_configs, any_ids)

# -- spellings of the same -----------------------------------------------------------------------------------------------


def snake(name: str) -> str:
    """`pageSize` -> `page_size`."""
    return "".join("_" + c.lower() if c.isupper() else c for c in name)


#: Below these stand other people's names.
_FREE = {"metadata", "data", "headers"}


def respelled(tree: Any, names: set[str]) -> Any:
    """The tree with these names in snake_case, wherever they stand for members."""
    if isinstance(tree, list):
        return [respelled(item, names) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        snake(key) if key in names else key: value if key in _FREE else respelled(value, names)
        for key, value in tree.items()
    }


def salted(tree: Any, more: Tree) -> Any:
    """The tree with these members in every object that the protocol defines."""
    if isinstance(tree, list):
        return [salted(item, more) for item in tree]
    if not isinstance(tree, dict):
        return tree
    said = {k: value if k in _FREE else salted(value, more) for k, value in tree.items()}
    return {**more, **said}


def _optional_of_part(form: Form) -> list[str]:
    if form.newest:
        return ["text", "raw", "url", "filename", "mediaType", "metadata"]
    kinds = ["kind", "type"] if form.tag or form.content == "content" else []
    return ["text", "file", "data", "metadata", *kinds]


def _optional_of_message(form: Form) -> list[str]:
    if form.oldest:
        return ["metadata"]
    names = ["contextId", "taskId", "metadata", "extensions", "referenceTaskIds"]
    if form.kinds or form.content == "content":
        names.append("kind")
    return [*names, "parts"] if form.content == "content" else names


def _optional_of_send(form: Form) -> list[str]:
    if form.oldest:
        return ["sessionId", "historyLength", "pushNotification", "acceptedOutputModes", "metadata"]
    names = ["configuration", "metadata"]
    if form.newest:
        return [*names, "tenant"]
    return [*names, "messageId"] if form.kinds else [*names, "request"]


def _optional_of_configuration(form: Form) -> list[str]:
    waiting = "returnImmediately" if form.newest else "blocking"
    push = ["taskPushNotificationConfig"] if form.newest else [_push_key(form)]
    if form.newest or form.content == "content":
        push.append("pushNotificationConfig")
    return ["acceptedOutputModes", "historyLength", waiting, *push]


def _optional_of_push(form: Form) -> list[str]:
    return ["token", "authentication"] if form.oldest else ["id", "token", "authentication"]


def _optional_of_file(form: Form) -> list[str]:
    return [*form.file, "name"]


_OPTIONAL = (
    _optional_of_send,
    _optional_of_message,
    _optional_of_part,
    _optional_of_file,
    _optional_of_configuration,
    _optional_of_push,
)
_OF_LISTS = ["status", "pageSize", "pageToken", "historyLength", "includeArtifacts"]
_OF_TIME = ["lastUpdatedAfter", "statusTimestampAfter"]
#: Every name that some dialect lets be absent.
OPTIONAL = sorted(
    {name for form in FORMS for names in _OPTIONAL for name in names(form)}.union(
        _OF_LISTS, _OF_TIME
    )
)
#: Every name of a request that has two spellings.
CAMEL = sorted(name for name in {*OPTIONAL, "configId", "messageId"} if not name.islower())


def nulled(tree: Tree, names: list[str] | tuple[str, ...], chosen: set[str]) -> Tree:
    """The object with the chosen of these members as null, where they are absent."""
    return {**{name: None for name in names if name in chosen}, **tree}


def nulled_send(form: Form, params: Tree, chosen: set[str]) -> Tree:
    """The parameters of a send with nulls for what is absent, at every depth."""
    message = nulled(params["message"], _optional_of_message(form), chosen)
    message[form.content] = [_nulled_part(form, part, chosen) for part in message[form.content]]
    said = nulled(params | {"message": message}, _optional_of_send(form), chosen)
    if isinstance(said.get("configuration"), dict):
        found = nulled(said["configuration"], _optional_of_configuration(form), chosen)
        said["configuration"] = {
            key: _nulled_push(form, value, chosen) if isinstance(value, dict) else value
            for key, value in found.items()
        }
    return said


def _nulled_part(form: Form, part: Tree, chosen: set[str]) -> Tree:
    said = nulled(part, _optional_of_part(form), chosen)
    if isinstance(said.get("file"), dict):
        said["file"] = nulled(said["file"], _optional_of_file(form), chosen)
    if said.keys() >= {"kind", "type"} and form.tag:  # one of the two may well be absent
        said.pop({"kind": "type", "type": "kind"}[form.tag])
    return said


def _nulled_push(form: Form, config: Tree, chosen: set[str]) -> Tree:
    return nulled(config, _optional_of_push(form), chosen)


# -- anything at all -----------------------------------------------------------------------------------------------------

#: Names of members of requests in any dialect, and of nothing.
MEMBERS = sorted(
    {
        *CAMEL,
        *(snake(name) for name in CAMEL),
        *OPTIONAL,
        "",
        "blocking",
        "bytes",
        "config",
        "content",
    }
    | {"message", "parent", "role", "schemes", "scheme", "uri", "headers", "authentication"}
)
_STRINGS = ["", "x", "a/b", "tasks/t", "tasks/t/pushNotificationConfigs/c", "AAAA", "=", "1", "-1"]
_TERMS = ["user", "agent", "ROLE_USER", "message", "text", "file", "data", "completed"]
_ODD = ["TASK_STATE_WORKING", "\x00", "x" * 257, "2026-01-01T00:00:00Z", None, True, False]
_NUMBERS = [0, 1, -1, 8, 101, 0.5, 1.0, 1e300, 2**31, 2**64 - 1, -(2**63)]
_LEAVES = st.sampled_from([*_STRINGS, *_TERMS, *_ODD, *_NUMBERS])
#: JSON that resembles requests.
anything: st.SearchStrategy[Any] = st.recursive(
    _LEAVES | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(MEMBERS) | texts, inner, max_size=5)
    ),
    max_leaves=12,
)
any_params = st.dictionaries(st.sampled_from(MEMBERS) | texts, anything, max_size=6)


def spots(tree: Any, so_far: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The places in a tree, each as the way to it."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(tree, dict):
        inner = list(tree.items())
    elif isinstance(tree, list):
        inner = list(enumerate(tree))
    return [so_far, *(spot for key, value in inner for spot in spots(value, (*so_far, key)))]


def grafted(tree: Any, way: tuple[str | int, ...], value: Any) -> Any:
    """A copy of the tree with another value at one place."""
    if not way:
        return value
    copy: Any = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[way[0]] = grafted(copy[way[0]], way[1:], value)
    return copy


def pretty(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False)
