"""The draft of 1.0 (November 2025): PascalCase methods, states as words, `/v1`, problem+json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from a2a_tasks.protocol import errors
from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.dialects.dialect import Dialect, DialectFeatures, DialectRefusal
from a2a_tasks.protocol.dialects.kinds import Kinds
from a2a_tasks.protocol.dialects.listing import read_word_listing
from a2a_tasks.protocol.dialects.reading import (
    any_role,
    message_or_request,
    read_wrapped_part,
)
from a2a_tasks.protocol.dialects.resources import COMMON_ROUTES, PushResources, task_of
from a2a_tasks.protocol.dialects.signed_members import DRAFT, CardSignature
from a2a_tasks.protocol.dialects.trees import Tree, violations, write_wrapped
from a2a_tasks.protocol.dialects.v10 import CODES_1_0_0
from a2a_tasks.protocol.errors import A2AError, ProtocolError
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Request,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.rest import Match, Route
from a2a_tasks.protocol.values import Part, Role, TaskState

__all__ = ["Draft"]

TYPES = "https://a2a-protocol.org/errors/"


class Draft(PushResources, Kinds):
    """The draft; its objects are those of 0.3 without `kind`, its operations those of 1.0."""

    code, version, title = "dr", "1.0", "1.0 draft"
    features = DialectFeatures(waits=False, enforces_extensions=True)
    path, admits = "1.0-draft", frozenset({"1.0", "0.3"})
    card_members = cards.ABOUT | cards.MODES | {"protocolVersion"}
    signature = CardSignature(DRAFT)
    pushes_events = True
    methods = {
        "SendMessage": "SendMessage",
        "SendStreamingMessage": "SendStreamingMessage",
        "GetTask": "GetTask",
        "ListTasks": "ListTasks",
        "CancelTask": "CancelTask",
        "SubscribeToTask": "SubscribeToTask",
        "SetTaskPushNotificationConfig": "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig": "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfig": "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig": "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard": "GetExtendedAgentCard",
    }
    routes = (
        # before `{id}`, which matches it, too
        Route(("POST", "GET"), "v1/tasks/list", "ListTasks"),
        *COMMON_ROUTES,
        Route(("GET",), "v1/extendedAgentCard", "GetExtendedAgentCard"),
    )
    a2a_json = True
    states = {state: state.word for state in TaskState} | {TaskState.CANCELED: "cancelled"}
    faces = {}
    statuses = {kind: status for kind, (status, _) in CODES_1_0_0.items()}
    PROBLEM = "application/problem+json"

    @cached_property
    def rest(self) -> Dialect:
        """The form over HTTP+JSON, where results are always wrapped."""
        return Draft(replace(self.switches, draft_bare_results=False))

    def read_part(self, fields: Fields) -> Part:
        return read_wrapped_part(fields, "media_type")

    def read_role(self, fields: Fields) -> Role:
        return any_role(fields, "must be user or agent")

    def message_of(self, fields: Fields) -> Fields | None:
        return message_or_request(fields)

    def read_get(self, fields: Fields) -> GetTaskRequest:
        return GetTaskRequest(
            id=task_of(fields, "name"), history_length=fields.length("history_length")
        )

    def read_list(self, fields: Fields) -> ListTasksRequest:
        return read_word_listing(fields)

    def read_cancel(self, fields: Fields) -> CancelTaskRequest:
        return CancelTaskRequest(id=task_of(fields, "name"), metadata=fields.struct("metadata"))

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        return SubscribeToTaskRequest(id=task_of(fields, "name"))

    def decode_route(
        self, match: Match, body: Mapping[str, Any], query: Mapping[str, Any]
    ) -> Request:
        if "configId" in query and "taskId" in match.params:  # its proto has it in the query
            body = {"configId": query["configId"], **body}
        return super().decode_route(match, self.under_path(match, body), query)

    def kind(self, kind: str) -> Tree:
        return {}

    def part(self, part: Tree) -> Tree:
        return write_wrapped(part, "mediaType")

    def wrap(self, kind: str, tree: Tree) -> Tree:
        return tree if self.switches.draft_bare_results else {kind: tree}

    def detail(self, fault: A2AError) -> Any:
        """Return the `data` of an error as an object: the bad fields, or the metadata of the error."""
        bad = violations(fault)
        if bad:
            return {"errors": bad}
        about: Tree = dict(fault.metadata) if isinstance(fault, ProtocolError) else {}
        if isinstance(fault, errors.VersionNotSupported):
            about = {"supportedVersions": fault.metadata["supportedVersions"].split(",")}
        if isinstance(fault, errors.IdempotencyConflict):
            about = {"reason": fault.reason}
        if fault.message != self.face(fault)[1]:
            about["detail"] = fault.message
        return about or None

    def problem(self, fault: A2AError) -> Tree:
        """Return RFC 9457 problem details."""
        kind = "about:blank"
        if isinstance(fault, ProtocolError):
            kind = TYPES + fault.reason.lower().replace("_", "-")
        return {
            **(self.detail(fault) or {}),
            "type": kind,
            "title": fault.title,
            "status": self.http_status(fault),
            "detail": fault.message,
        }

    def refusal(self, fault: A2AError) -> DialectRefusal:
        return DialectRefusal(self.http_status(fault), write(self.problem(fault)), self.PROBLEM)

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        return cards.draft(card, url)
