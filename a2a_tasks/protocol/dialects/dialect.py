"""What a dialect is: its names, its manners, and how it reads requests and writes answers.

A dialect is pure: it knows nothing of HTTP or the store. `read_*` methods turn the members of a request into a
canonical request value; a bad member is noted, and all of them are refused together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import msgspec

from a2a_tasks.protocol.catalogue import BY_NAME
from a2a_tasks.protocol.errors import A2AError, InvalidParams, MethodNotFound
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.lifecycle import Recorded, mark_of
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
)

__all__ = ["Dialect", "Manners", "Refusal", "Result", "Subject", "Switches", "by_kind"]

V = TypeVar("V")

Result = Task | Raw | TaskPage | PushConfig | PushConfigPage | Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Switches:
    """What an operator may turn; see the settings of the same names."""

    #: PascalCase methods need `A2A-Version: 1.0`, and are 1.0 then (A2A 1.0 §3.6.2 to the letter).
    strict_version: bool = False
    #: Methods that A2A 1.0 has not are served also to those who ask for 1.0.
    legacy_method_with_1_0: bool = False
    #: HTTP and gRPC codes of the errors, as of 1.0.1 or 1.0.0 (A2A 1.0 §5.4).
    v10_error_table: str = "1.0.1"
    #: `pageSize` of a page of tasks is the number of tasks on it, not the size asked for.
    list_page_size_returns_count: bool = False
    #: The draft's JSON-RPC results and stream items without the wrapper of their kind.
    draft_bare_results: bool = False
    #: File bytes are base64 twice in 0.3 over HTTP+JSON, as its released peers have it.
    double_base64_v03: bool = True
    #: A message to an ended task begins it anew in seed-0, 0.0 and 0.1.
    v01_reopen_terminal: bool = True


@dataclass(frozen=True, kw_only=True)
class Manners:
    """How a dialect behaves beyond its spelling. `docs/protocol-support.md` is drawn from these."""

    #: The client names new tasks.
    client_names_task: bool = False
    #: A send without a word about it waits for the task to settle.
    waits: bool = True
    #: History in an answer when nobody asks for a length; None = all of it.
    history: int | None = None
    #: A message to an ended task begins it anew.
    reopens: bool = False
    #: An agent may answer with a Message instead of a Task.
    direct_message: bool = True
    #: States at which the stream of a send ends although the task goes on.
    pauses: frozenset[TaskState] = frozenset({TaskState.INPUT_REQUIRED})
    #: Following an ended task shows it.
    lenient_subscribe: bool = False
    #: Status events say whether they are the last of their stream.
    final: bool = True
    #: Artifacts are known by their position.
    index: bool = False
    #: A required extension that is not asked for is an error.
    enforces_extensions: bool = False
    #: An error in a stream is announced by an `event: error` line.
    error_event: bool = False
    #: Over JSON-RPC, what refuses a stream is the stream's only event (A2A 0.3 §3.3.1, §7.9).
    streams_refusals: bool = False
    #: States it has no word for, and the one it says instead.
    degraded: Mapping[TaskState, TaskState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error over HTTP+JSON."""

    status: int
    body: bytes
    #: Empty = the media type of the dialect's answers.
    media_type: str = ""


class _Named(msgspec.Struct, rename="camel"):
    artifact_id: str


_artifact_id = msgspec.json.Decoder(_Named).decode


def by_kind(table: Mapping[type[A2AError], V], fault: A2AError) -> V | None:
    """The entry of a table for an error, or for the nearest kind it is one of."""
    return next((table[kind] for kind in type(fault).__mro__ if kind in table), None)


class Subject:
    """The task a stream is about: its ids, and the positions of its artifacts for dialects that count them."""

    __slots__ = ("_artifacts", "_positions", "context_id", "id", "mark")

    def __init__(
        self,
        task_id: str,
        context_id: str,
        artifacts: Sequence[Raw] | UnsetType = UNSET,
        mark: str = "",
    ) -> None:
        self.id, self.context_id = task_id, context_id
        #: See `lifecycle.mark_of`; it stands in the ids of the stream's events.
        self.mark = mark
        self._artifacts = artifacts
        self._positions: dict[str, int] | None = None

    @classmethod
    def of(cls, task: Task) -> Subject:
        """The subject of a stream that begins where `task` stands."""
        return cls(task.id, task.context_id, task.artifacts, mark_of(task))

    def position(self, artifact_id: str) -> int:
        """The order of the artifact's creation, from 0; one not met before comes next."""
        if self._positions is None:
            known = () if self._artifacts is UNSET else self._artifacts
            names = [_artifact_id(artifact).artifact_id for artifact in known]
            self._positions = {name: position for position, name in enumerate(names)}
        return self._positions.setdefault(artifact_id, len(self._positions))


class Dialect(ABC):
    """One generation of the wire."""

    #: Stored on tasks and shown to people: `v10`.
    code: ClassVar[str]
    #: Its A2A-Version; empty if it has none.
    version: ClassVar[str]
    #: What people call it.
    title: ClassVar[str]
    manners: ClassVar[Manners]
    #: JSON-RPC method to operation.
    methods: ClassVar[Mapping[str, str]]
    #: HTTP+JSON routes; none if the dialect has no such binding.
    routes: ClassVar[tuple[Route, ...]] = ()
    #: May the name of a tenant stand before its routes?
    has_tenants: ClassVar[bool] = False
    #: May answers over HTTP+JSON be called `application/a2a+json`?
    a2a_json: ClassVar[bool] = False

    def __init__(self, switches: Switches | None = None) -> None:
        self.switches = switches or Switches()

    @property
    def rest(self) -> Dialect:
        """The form it takes over HTTP+JSON."""
        return self

    # -- reading ---------------------------------------------------------------------------------------------------

    def decode(self, operation: str, params: Mapping[str, Any]) -> Request:
        """The request value. Raises InvalidParams naming each bad field, MethodNotFound."""
        if operation not in BY_NAME:
            raise MethodNotFound
        if not isinstance(params, Mapping):
            raise InvalidParams.field("params", "must be an object")
        fields = Fields(params)
        request: Request = getattr(self, _READERS[operation])(fields)
        fields.check()
        return request

    def decode_route(
        self, match: Match, said: Mapping[str, Any], query: Mapping[str, Any]
    ) -> Request:
        """The same from a route: `said` is its body, or the query where it has none. Raises InvalidParams."""
        return self.decode(match.operation, merge(match.params, said))

    @abstractmethod
    def read_send(self, fields: Fields) -> SendMessageRequest:
        """SendMessage and SendStreamingMessage."""

    @abstractmethod
    def read_get(self, fields: Fields) -> GetTaskRequest:
        """GetTask."""

    def read_list(self, fields: Fields) -> ListTasksRequest:
        """ListTasks. Raises MethodNotFound where the dialect has none."""
        raise MethodNotFound

    @abstractmethod
    def read_cancel(self, fields: Fields) -> CancelTaskRequest:
        """CancelTask."""

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        """SubscribeToTask. Raises MethodNotFound where the dialect has none."""
        raise MethodNotFound

    @abstractmethod
    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        """CreateTaskPushNotificationConfig."""

    @abstractmethod
    def read_get_push(self, fields: Fields) -> GetPushConfigRequest:
        """GetTaskPushNotificationConfig."""

    def read_list_push(self, fields: Fields) -> ListPushConfigsRequest:
        """ListTaskPushNotificationConfigs. Raises MethodNotFound where the dialect has none."""
        raise MethodNotFound

    def read_delete_push(self, fields: Fields) -> DeletePushConfigRequest:
        """DeleteTaskPushNotificationConfig. Raises MethodNotFound where the dialect has none."""
        raise MethodNotFound

    def read_card(self, fields: Fields) -> GetAgentCardRequest:
        """GetAgentCard."""
        return GetAgentCardRequest()

    def read_extended_card(self, fields: Fields) -> GetExtendedAgentCardRequest:
        """GetExtendedAgentCard."""
        return GetExtendedAgentCardRequest()

    # -- writing ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def answer(self, operation: str, result: Result) -> bytes:
        """The JSON of a result; a Raw is a direct Message, None the answer of a deletion."""

    @abstractmethod
    def first(self, subject: Subject, item: Task | Raw, *, ended: bool) -> list[bytes]:
        """The JSON of what a stream begins with: the Task or the one direct Message; `ended`: nothing follows."""

    @abstractmethod
    def event(self, subject: Subject, event: Recorded, *, final: bool) -> bytes:
        """The JSON of a stream item for a status or artifact event; `final`: the stream ends with it."""

    @abstractmethod
    def error(self, fault: A2AError) -> Mapping[str, Any]:
        """The error object of JSON-RPC: code, message, perhaps data."""

    @abstractmethod
    def refusal(self, fault: A2AError) -> Refusal:
        """The error over HTTP+JSON."""

    @abstractmethod
    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        """The dialect's strict card, from the canonical one; `url` is that of the dialect's mount."""


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
