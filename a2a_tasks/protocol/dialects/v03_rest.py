"""A2A 0.3 over HTTP+JSON: ProtoJSON of its proto, as released peers send it; the text's `kind` form is read, too."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from a2a_tasks.protocol import errors
from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.dialects.dialect import DialectRefusal
from a2a_tasks.protocol.dialects.kinds import Kinds
from a2a_tasks.protocol.dialects.listing import read_word_listing
from a2a_tasks.protocol.dialects.reading import (
    any_role,
    message_or_request,
    parts,
    push_config,
    read_tagged_part,
    read_wrapped_part,
)
from a2a_tasks.protocol.dialects.resources import COMMON_ROUTES, PushResources
from a2a_tasks.protocol.dialects.trees import Tree, write_wrapped
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.requests import ListTasksRequest, Request
from a2a_tasks.protocol.rest import Match, Route
from a2a_tasks.protocol.values import Part, PushConfig, PushConfigPage, Role, TaskPage, TaskState

__all__ = ["ROUTES", "V03Rest"]

ROUTES: tuple[Route, ...] = (
    *COMMON_ROUTES,
    Route(("GET",), "v1/card", "GetExtendedAgentCard"),
    Route(("GET",), "v1/agent/authenticatedExtendedCard", "GetExtendedAgentCard"),
)

#: By the code of an error, the `type` by which the official client distinguishes errors of 0.3 (a2a-sdk 1.x, compat
#: mode).
TYPES = {
    -32001: "TaskNotFoundError",
    -32002: "TaskNotCancelableError",
    -32003: "PushNotificationNotSupportedError",
    -32004: "UnsupportedOperationError",
    -32005: "ContentTypeNotSupportedError",
    -32006: "InvalidAgentResponseError",
    -32007: "ExtendedAgentCardNotConfiguredError",
    -32008: "ExtensionSupportRequiredError",
    -32009: "VersionNotSupportedError",
    -32600: "InvalidRequestError",
    -32601: "MethodNotFoundError",
    -32602: "InvalidParamsError",
    -32603: "InternalError",
    -32700: "JSONParseError",
}


class V03Rest(PushResources, Kinds):
    """The form of 0.3 over HTTP+JSON."""

    code, version, title = "v03", "0.3", "0.3"
    routes = ROUTES
    roles = {role: role.value for role in Role}
    states = {state: state.value for state in TaskState} | {
        TaskState.CANCELED: "TASK_STATE_CANCELLED"
    }
    statuses = {
        errors.TaskNotCancelable: 409,
        errors.ExtendedCardUndeclared: 404,
        errors.ExtendedAgentCardNotConfigured: 404,
        errors.ContentTypeNotSupported: 415,
        errors.InvalidAgentResponse: 502,
    }

    def read_part(self, fields: Fields) -> Part:
        if fields.value("kind") is not None or fields.value("type") is not None:
            return read_tagged_part(fields, "kind")
        return read_wrapped_part(fields, "mime_type", doubled=self.switches.double_base64_v03)

    def read_role(self, fields: Fields) -> Role:
        return any_role(fields, "must be ROLE_USER or ROLE_AGENT")

    def read_parts(self, fields: Fields) -> tuple[Part, ...]:
        return parts(
            fields, self.read_part, "content" if fields.value("parts") is None else "parts"
        )

    def message_of(self, fields: Fields) -> Fields | None:
        return message_or_request(fields)

    def read_waits(self, fields: Fields, configuration: Fields) -> bool:
        """Return whether the client waits.

        ProtoJSON omits a false `blocking`; in the text's form a missing one means nothing.
        """
        message = fields.object("message") or fields.object("request")
        proto = message is not None and message.value("content") is not None
        has_blocking = (
            configuration.value("blocking") is not None or fields.value("configuration") is None
        )
        if proto and not has_blocking:
            return False
        return super().read_waits(fields, configuration)

    def read_inline_push(self, configuration: Fields) -> PushConfig | None:
        found = configuration.object("push_notification")
        found = found or configuration.object("push_notification_config")
        return push_config(found, self.code) if found else None

    def read_list(self, fields: Fields) -> ListTasksRequest:
        return read_word_listing(fields)

    def decode_route(
        self, match: Match, body: Mapping[str, Any], query: Mapping[str, Any]
    ) -> Request:
        return super().decode_route(match, self.under_path(match, body), query)

    def kind(self, kind: str) -> Tree:
        return {}

    def part(self, part: Tree) -> Tree:
        if "raw" in part and self.switches.double_base64_v03:
            part = part | {"raw": base64.b64encode(part["raw"].encode()).decode()}
        return write_wrapped(part, "mimeType")

    def message(self, message: Tree) -> Tree:
        tree = super().message(message)
        tree["content"] = tree.pop("parts")
        tree.pop("referenceTaskIds", None)  # its proto has no such field
        return tree

    def wrap(self, kind: str, tree: Tree) -> Tree:
        return {kind: tree}

    def page(self, page: TaskPage) -> Any:
        return [self.task(task) for task in page.tasks]

    def push_configs(self, page: PushConfigPage) -> Any:
        tree = super().push_configs(page)
        return tree if page.next_page_token else {"configs": tree["configs"]}

    def refusal(self, fault: errors.A2AError) -> DialectRefusal:
        tree = dict(self.error(fault))
        if kind := TYPES.get(tree["code"]):
            tree["type"] = kind
        return DialectRefusal(self.http_status(fault), write(tree))

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        return cards.v03(card, url)
