"""A dialect: its names, its rules, and the code that reads its requests and writes its answers.

A dialect is pure: it knows nothing of HTTP or the store. `read_*` methods turn the members of a request into a
canonical request value; they record each bad member, and all are refused together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import msgspec

from a2a_tasks.protocol.catalogue import BY_NAME
from a2a_tasks.protocol.dialects.signed_members import CardSignature
from a2a_tasks.protocol.errors import A2AError, InvalidParams, MethodNotFound
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, LogEvent, fold, mark_of
from a2a_tasks.protocol.requests import (
    CancelTaskRequest,
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetAgentCardRequest,
    GetExtendedAgentCardRequest,
    GetPushConfigRequest,
    GetTaskRequest,
    ListPushConfigsRequest,
    ListTasksRequest,
    Request,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.rest import Match, Route, merge
from a2a_tasks.protocol.values import (
    UNSET,
    PushConfig,
    PushConfigPage,
    Raw,
    Task,
    TaskPage,
    TaskState,
    UnsetType,
    replace,
)

__all__ = [
    "Dialect",
    "DialectFeatures",
    "DialectRefusal",
    "Result",
    "Subject",
    "CompatOptions",
    "by_kind",
]

V = TypeVar("V")

Result = Task | Raw | TaskPage | PushConfig | PushConfigPage | Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class CompatOptions:
    """The options of operators for compatibility; see the settings of the same names."""

    #: PascalCase methods need `A2A-Version: 1.0`, and are 1.0 then (A2A 1.0 §3.6.2 to the letter).
    strict_version: bool = False
    #: Methods unknown to A2A 1.0 are also served to clients that ask for 1.0.
    legacy_method_with_1_0: bool = False
    #: HTTP and gRPC codes of the errors, as of 1.0.1 or 1.0.0 (A2A 1.0 §5.4).
    v10_error_table: str = "1.0.1"
    #: `pageSize` of a page of tasks is the number of tasks on it, not the size asked for.
    list_page_size_returns_count: bool = False
    #: The draft's JSON-RPC results and stream items have no wrapper of their kind.
    draft_bare_results: bool = False
    #: File bytes are base64 twice in 0.3 over HTTP+JSON, as in its released peers.
    double_base64_v03: bool = True
    #: A message to an ended task begins it anew in seed-0, 0.0 and 0.1.
    v01_reopen_terminal: bool = True


@dataclass(frozen=True, kw_only=True)
class DialectFeatures:
    """The behaviour of a dialect beyond its spelling. `docs/reference/protocol-support.md` is generated from these values."""

    #: The client chooses the ids of new tasks.
    client_names_task: bool = False
    #: A send waits for the task to settle, unless the client says otherwise.
    waits: bool = True
    #: Length of the history in an answer when the client gives none; None = all.
    history: int | None = None
    #: A message to an ended task begins it anew.
    reopens: bool = False
    #: An agent may answer with a Message instead of a Task.
    direct_message: bool = True
    #: States at which the stream of a send ends although the task goes on.
    pauses: frozenset[TaskState] = frozenset({TaskState.INPUT_REQUIRED})
    #: A subscription to an ended task returns the task.
    lenient_subscribe: bool = False
    #: Status events say whether they are the last of their stream.
    final: bool = True
    #: Artifacts are identified by their position.
    index: bool = False
    #: A task has one webhook, named as the task.
    one_webhook: bool = False
    #: Id of a webhook that is registered without one; empty = a random one.
    webhook_id: str = ""
    #: A required extension that the client does not request is an error.
    enforces_extensions: bool = False
    #: An error in a stream is announced by an `event: error` line.
    error_event: bool = False
    #: Over JSON-RPC, the refusal of a stream is the stream's only event (A2A 0.3 §3.3.1, §7.9).
    streams_refusals: bool = False
    #: States unknown to the dialect, each with the state written instead.
    degraded: Mapping[TaskState, TaskState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DialectRefusal:
    """An error over HTTP+JSON."""

    status: int
    body: bytes
    #: Media type of the body; empty = the media type of the dialect's answers.
    media_type: str = ""


class _ArtifactId(msgspec.Struct, rename="camel"):
    artifact_id: str


_artifact_id = msgspec.json.Decoder(_ArtifactId).decode


def by_kind(table: Mapping[type[A2AError], V], fault: A2AError) -> V | None:
    """Return the entry of a table for an error, or for its nearest base class in the table."""
    return next((table[kind] for kind in type(fault).__mro__ if kind in table), None)


class Subject:
    """The task of a stream: its ids, and the positions of its artifacts for dialects that number them."""

    __slots__ = ("_artifacts", "_positions", "context_id", "id", "mark")

    def __init__(
        self,
        task_id: str,
        context_id: str,
        artifacts: Sequence[Raw] | UnsetType = UNSET,
        mark: str = "",
    ) -> None:
        self.id, self.context_id = task_id, context_id
        #: See `lifecycle.mark_of`; the ids of the stream's events contain it.
        self.mark = mark
        self._artifacts = artifacts
        self._positions: dict[str, int] | None = None

    @classmethod
    def of(cls, task: Task) -> Subject:
        """Return the subject of a stream that begins at the present state of `task`."""
        return cls(task.id, task.context_id, task.artifacts, mark_of(task))

    def position(self, artifact_id: str) -> int:
        """Return the position of an artifact in order of creation, from 0; a new artifact gets the next one."""
        if self._positions is None:
            artifacts = () if self._artifacts is UNSET else self._artifacts
            names = [_artifact_id(artifact).artifact_id for artifact in artifacts]
            self._positions = {name: position for position, name in enumerate(names)}
        return self._positions.setdefault(artifact_id, len(self._positions))


class Dialect(ABC):
    """One generation of the wire format."""

    #: The code stored on tasks and shown to operators: `v10`.
    code: ClassVar[str]
    #: Its A2A-Version; empty if it has none.
    version: ClassVar[str]
    #: The name shown to people.
    title: ClassVar[str]
    features: ClassVar[DialectFeatures]
    #: The name of its own mount, below `a2a/`, and the A2A-Versions admitted there besides an absent one.
    path: ClassVar[str]
    admits: ClassVar[frozenset[str]] = frozenset()
    #: The members that readers of its card require, and those that they require of a skill.
    card_members: ClassVar[frozenset[str]]
    skill_members: ClassVar[tuple[str, ...]] = ("id", "name", "description", "tags")
    #: The signature of its card; None = the dialect has none.
    signature: ClassVar[CardSignature | None] = None
    #: True if webhooks get the events of a stream (A2A 1.0 §4.3.3); others get the task, when it ends or waits.
    pushes_events: ClassVar[bool] = False
    #: True if a task is sent to webhooks with its content; False = its status alone.
    pushes_content: ClassVar[bool] = True
    #: The media type of what webhooks get.
    push_media_type: ClassVar[str] = "application/json"
    #: The headers of a webhook's token.
    token_headers: ClassVar[tuple[str, ...]] = ("X-A2A-Notification-Token",)
    #: True if a webhook has one authentication scheme, sent as it was given (A2A 1.0 §4.3.3).
    one_scheme: ClassVar[bool] = False
    #: True if clients choose the headers of their webhooks; they can read back the names.
    names_headers: ClassVar[bool] = False
    #: True if tasks have metadata.
    has_metadata: ClassVar[bool] = True
    #: Maps JSON-RPC methods to operations.
    methods: ClassVar[Mapping[str, str]]
    #: HTTP+JSON routes; none if the dialect has no such binding.
    routes: ClassVar[tuple[Route, ...]] = ()
    #: True if the name of a tenant may precede its routes.
    has_tenants: ClassVar[bool] = False
    #: True if answers over HTTP+JSON may have the media type `application/a2a+json`.
    a2a_json: ClassVar[bool] = False

    def __init__(self, switches: CompatOptions | None = None) -> None:
        self.switches = switches or CompatOptions()

    @property
    def rest(self) -> Dialect:
        """The form of the dialect over HTTP+JSON."""
        return self

    # -- reading ---------------------------------------------------------------------------------------------------

    def decode(self, operation: str, params: Mapping[str, Any]) -> Request:
        """Return the request value. Raises InvalidParams naming each bad field, MethodNotFound."""
        if operation not in BY_NAME:
            raise MethodNotFound
        if not isinstance(params, Mapping):
            raise InvalidParams.field("params", "must be an object")
        fields = Fields(params)
        request: Request = getattr(self, _READERS[operation])(fields)
        fields.check()
        return request

    def decode_route(
        self, match: Match, body: Mapping[str, Any], query: Mapping[str, Any]
    ) -> Request:
        """As `decode`, for a route; `body` is the query if there is no body. Raises InvalidParams."""
        return self.decode(match.operation, merge(match.params, body))

    @abstractmethod
    def read_send(self, fields: Fields) -> SendMessageRequest:
        """Read SendMessage and SendStreamingMessage."""

    @abstractmethod
    def read_get(self, fields: Fields) -> GetTaskRequest:
        """Read GetTask."""

    def read_list(self, fields: Fields) -> ListTasksRequest:
        """Read ListTasks. Raises MethodNotFound where the dialect lacks it."""
        raise MethodNotFound

    @abstractmethod
    def read_cancel(self, fields: Fields) -> CancelTaskRequest:
        """Read CancelTask."""

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        """Read SubscribeToTask. Raises MethodNotFound where the dialect lacks it."""
        raise MethodNotFound

    @abstractmethod
    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        """Read CreateTaskPushNotificationConfig."""

    @abstractmethod
    def read_get_push(self, fields: Fields) -> GetPushConfigRequest:
        """Read GetTaskPushNotificationConfig."""

    def read_list_push(self, fields: Fields) -> ListPushConfigsRequest:
        """Read ListTaskPushNotificationConfigs. Raises MethodNotFound where the dialect lacks it."""
        raise MethodNotFound

    def read_delete_push(self, fields: Fields) -> DeletePushConfigRequest:
        """Read DeleteTaskPushNotificationConfig. Raises MethodNotFound where the dialect lacks it."""
        raise MethodNotFound

    def read_card(self, fields: Fields) -> GetAgentCardRequest:
        """Read GetAgentCard."""
        return GetAgentCardRequest()

    def read_extended_card(self, fields: Fields) -> GetExtendedAgentCardRequest:
        """Read GetExtendedAgentCard."""
        return GetExtendedAgentCardRequest()

    # -- writing ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def answer(self, operation: str, result: Result) -> bytes:
        """Return the JSON of a result; a Raw is a direct Message, None the answer to a deletion."""

    @abstractmethod
    def first(self, subject: Subject, item: Task | Raw, *, ended: bool) -> list[bytes]:
        """Return the JSON of a stream's beginning: the Task or the only direct Message; `ended`: nothing follows."""

    @abstractmethod
    def event(self, subject: Subject, event: LogEvent, *, final: bool) -> bytes:
        """Return the JSON of a stream item for a status or artifact event; `final`: the stream ends with it."""

    def push_event(self, event: LogEvent, task: Task) -> bytes:
        """Return the body of a webhook's notification of an event; `task` is its task in its present state."""
        if self.pushes_events:
            ends = TERMINAL | self.features.pauses
            final = event.kind is EventKind.STATUS and event.state in ends
            return self.event(Subject(task.id, task.context_id), event, final=final)
        history = UNSET if self.features.history == 0 else task.history
        return self.push_task(replace(fold(replace(task, history=UNSET), [event]), history=history))

    def push_task(self, task: Task) -> bytes:
        """Return the body of a webhook's notification of a task as it is."""
        if self.pushes_events:
            return self.first(Subject(task.id, task.context_id), task, ended=False)[0]
        return self.answer("GetTask", task)

    @abstractmethod
    def error(self, fault: A2AError) -> Mapping[str, Any]:
        """Return the error object of JSON-RPC: code, message, perhaps data."""

    @abstractmethod
    def refusal(self, fault: A2AError) -> DialectRefusal:
        """Return the error over HTTP+JSON."""

    @abstractmethod
    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        """Return the dialect's strict card, made from the canonical one; `url` is that of the dialect's mount."""


_READERS = {
    "SendMessage": "read_send",
    "SendStreamingMessage": "read_send",
    "GetTask": "read_get",
    "ListTasks": "read_list",
    "CancelTask": "read_cancel",
    "SubscribeToTask": "read_subscribe",
    "CreateTaskPushNotificationConfig": "read_create_push",
    "GetTaskPushNotificationConfig": "read_get_push",
    "ListTaskPushNotificationConfigs": "read_list_push",
    "DeleteTaskPushNotificationConfig": "read_delete_push",
    "GetAgentCard": "read_card",
    "GetExtendedAgentCard": "read_extended_card",
}
